#include "frameworks/torch_rewind.h"

#include "frameworks/torch_pools.h"
#include "frameworks/torch_state.h"
#include "recorder/numbered_names.h"
#include "system/sys.h"

#include <stddef.h>

namespace fragtrace::preload {

struct SettingBack {
    struct Block {
        uint64_t address;
        uint64_t bytes;
    };

    volatile uint64_t cookie;  // proves that the frame still exists, like TorchRequest::cookie
    uint32_t pool;
    size_t count;
    Block* blocks;
};

namespace {

constexpr size_t kMaxBlocksSetBack = size_t{1} << 20;  // pages cost nothing until touched

// AllocatorState as the native allocator creates it: the pool's id follows the pointer to the
// virtual table.
struct CheckpointState {
    void* functions;
    uint64_t pool_first;
    uint64_t pool_second;
};

struct SharedState {  // std::shared_ptr<AllocatorState>, passed by address
    const CheckpointState* state;
    void* control;
};

struct OpaqueDelta {  // CheckpointDelta, two vectors: returned in memory of the caller
    void* words[6];
    OpaqueDelta(const OpaqueDelta&) = delete;
    OpaqueDelta& operator=(const OpaqueDelta&) = delete;
    ~OpaqueDelta();
};

using SetCheckpoint = OpaqueDelta(void* self, int device, const SharedState* state);

SetCheckpoint* g_set_checkpoint;

SettingBack* current_setting_back() {
    SettingBack* back = torch_thread().setting_back;
    return back != nullptr && frame_lives(&back->cookie) ? back : nullptr;
}

// Records the pool's live blocks once more, on the thread that restored it.
void announce(const SettingBack& back, int device) {
    EventRecord event{};
    event.device = torch_device(device);
    event.stream = kStreamUnknown;
    event.pool = back.pool;
    const Stacks stacks = capture_stacks();
    event.native_stack = stacks.native;
    event.python_stack = stacks.python;
    event.kind = EventKind::kPoolRewind;
    record(event);
    event.kind = EventKind::kBlockAlloc;
    event.size = kUnknown64;
    for (size_t i = 0; i < back.count; ++i) {
        if (block_is_private(back.blocks[i].address)) {  // not freed again during the call
            event.address = back.blocks[i].address;
            event.extra = back.blocks[i].bytes;
            record(event);
        }
    }
}

// Exists during the call that restores a pool. After an exception, nothing is recorded and the
// memory leaks.
class SetBackScope {
  public:
    SetBackScope(uint32_t pool, int device) : device_(device) {
        back_.pool = pool;
        back_.blocks = static_cast<SettingBack::Block*>(map_private(kBytes));
        if (back_.blocks != nullptr) {
            back_.cookie = cookie_value(&back_.cookie);
            torch_thread().setting_back = &back_;
        }
    }

    ~SetBackScope() {
        if (back_.blocks != nullptr) {
            back_.cookie = 0;
            torch_thread().setting_back = nullptr;
            announce(back_, device_);
            unmap(back_.blocks, kBytes);
        }
    }

    SetBackScope(const SetBackScope&) = delete;
    SetBackScope& operator=(const SetBackScope&) = delete;

  private:
    static constexpr size_t kBytes = sizeof(SettingBack::Block) * kMaxBlocksSetBack;

    SettingBack back_{};
    int device_;
};

OpaqueDelta set_checkpoint(void* self, int device, const SharedState* state) {
    const uint32_t pool =
        pool_number(PoolOwner::kPytorch, state->state->pool_first, state->state->pool_second);
    if (!recording_enabled() || !pool_has_users(pool, torch_device(device))) {
        return g_set_checkpoint(self, device, state);  // the reports during the call are recorded
                                                       // as usual
    }
    const SetBackScope scope(pool, device);
    return g_set_checkpoint(self, device, state);
}

}  // namespace

void watch_rewinds(void** slots, const PoolSlots& layout) {
    replace_slot(slots, layout.set_checkpoint, &g_set_checkpoint, &set_checkpoint);
}

uint32_t pool_set_back() {
    const SettingBack* back = current_setting_back();
    return back == nullptr ? 0 : back->pool;
}

bool hold_back(uint64_t address, uint64_t bytes) {
    SettingBack* back = current_setting_back();
    if (back == nullptr) {
        return false;
    }
    if (back->count == kMaxBlocksSetBack) {
        torch_pools_incomplete("incomplete: a restored pool has more blocks than are kept");
    } else if (bytes != 0) {
        back->blocks[back->count++] = {address, bytes};
    }
    return true;
}

}  // namespace fragtrace::preload
