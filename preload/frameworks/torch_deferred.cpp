// Frees that PyTorch defers while a graph is being captured.
//
// While a stream is being captured, the allocator must not record CUDA events for its own use. If a
// block that other streams used is freed then, the allocator keeps it without an event. The first
// request after the capture, or empty_cache, records the events. Later releases record none for
// streams that used the block during the capture: that work is part of the graph, so nothing waits
// for it. No report shows either, so this file remembers the streams of each block from
// recordStream on.
#include "frameworks/torch_deferred.h"

#include "frameworks/torch_captures.h"
#include "frameworks/torch_pools.h"
#include "frameworks/torch_state.h"
#include "hooks/framework.h"
#include "system/address_table.h"
#include "system/sys.h"

namespace fragtrace::preload {
namespace {

struct DataPointer {  // c10::DataPtr, passed by address
    uint64_t data;
};

struct Stream {  // c10::cuda::CUDAStream, passed in two registers
    uint64_t words[2];
};

using RecordStream = void(void* self, const DataPointer* data, Stream stream);
using StreamHandle = void*(const Stream* stream);

RecordStream* g_record_stream;
StreamHandle* g_stream_handle;

// The streams of live blocks outside the default stream: use by a block's own stream does not
// count.
AddressTable<uint64_t, 65536> g_own_streams;

// ---- which streams use a block ------------------------------------------------------------------

struct Use {
    uint64_t block;  // 0 = free
    uint64_t stream;
    bool in_capture;
};

constexpr uint32_t kUses = 16384;
constexpr uint32_t kProbes = 32;  // if all probed places are full, the use is lost
Use g_uses[kUses];
int64_t g_use_count;

Use& use_at(uint64_t block, uint32_t probe) {
    const uint64_t hash = (block * 0x9e3779b97f4a7c15ull) >> 40;
    return g_uses[(static_cast<uint32_t>(hash) + probe) % kUses];
}

void remember_use(uint64_t block, uint64_t stream) {
    torch_note_special_block();
    const bool in_capture = may_capture(kDeviceUnknown);
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
        Use& use = use_at(block, probe);
        if (__atomic_load_n(&use.block, __ATOMIC_ACQUIRE) == block && use.stream == stream) {
            use.in_capture = in_capture;
            return;
        }
    }
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
        Use& use = use_at(block, probe);
        uint64_t expected = 0;
        if (__atomic_compare_exchange_n(
                &use.block, &expected, block, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            use.stream = stream;
            use.in_capture = in_capture;
            __atomic_fetch_add(&g_use_count, 1, __ATOMIC_RELEASE);
            return;
        }
    }
    torch_pools_incomplete("incomplete: more blocks are used by several streams than are kept");
}

// The program orders calls about one block, as AddressTable requires.
uint32_t take_uses(uint64_t block, Use* uses, uint32_t capacity) {
    uint32_t count = 0;
    if (__atomic_load_n(&g_use_count, __ATOMIC_ACQUIRE) == 0) [[likely]] {
        return count;
    }
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
        Use& use = use_at(block, probe);
        if (__atomic_load_n(&use.block, __ATOMIC_ACQUIRE) == block) {
            if (count < capacity) {
                uses[count++] = use;
            }
            __atomic_store_n(&use.block, 0, __ATOMIC_RELEASE);
            __atomic_fetch_sub(&g_use_count, 1, __ATOMIC_ACQ_REL);
        }
    }
    return count;
}

void record_stream(void* self, const DataPointer* data, Stream stream) {
    if (data->data != 0 && g_stream_handle != nullptr && recording_enabled()) {
        remember_use(data->data, reinterpret_cast<uint64_t>(g_stream_handle(&stream)));
    }
    g_record_stream(self, data, stream);
}

// ---- frees that wait ----------------------------------------------------------------------------

struct Deferred {
    uint64_t event;  // its number; 0 = complete
    uint64_t stream;
    uint16_t device;
    bool in_capture;
};

constexpr uint32_t kMaxDeferred = 32768;  // of consecutive captures
Deferred g_deferred[kMaxDeferred];        // in the order of the frees
uint32_t g_begin;
uint32_t g_end;
uint32_t g_waiting;
uint64_t g_numbers;
Lock g_lock;  // needed because every device has its own mutex

constexpr uint64_t kPatience_ns = 50 * kMillisecond_ns;
constexpr const char* kFreesLost = "incomplete: not all frees that wait for captures are known";

// Removes and returns the first wanted one for which `is_better` is true, or else the first wanted
// one. 0: none.
template <typename IsWanted, typename IsBetter>
uint64_t take_deferred(IsWanted is_wanted, IsBetter is_better) {
    uint64_t number = 0;
    if (load_acquire(&g_waiting) == 0) {
        return number;
    }
    if (!g_lock.lock_within(kPatience_ns)) {
        torch_pools_incomplete(kFreesLost);
        return number;
    }
    Deferred* best = nullptr;
    for (uint32_t i = g_begin; i < g_end; ++i) {
        Deferred& deferred = g_deferred[i];
        if (deferred.event != 0 && is_wanted(deferred)) {
            const bool better = is_better(deferred);
            best = best == nullptr || better ? &deferred : best;
            if (better) {
                break;
            }
        }
    }
    if (best != nullptr) {
        number = best->event;
        best->event = 0;
        count_up(&g_waiting, ~0u);
    }
    while (g_begin < g_end && g_deferred[g_begin].event == 0) {
        ++g_begin;
    }
    if (g_begin == g_end) {
        g_begin = g_end = 0;
    }
    g_lock.unlock();
    return number;
}

}  // namespace

void watch_stream_uses(void** slots, const PoolSlots& layout) {
    bool indirect = false;
    g_stream_handle = reinterpret_cast<StreamHandle*>(
        defined_symbol(g_torch.cuda, "_ZNK3c104cuda10CUDAStream6streamEv", &indirect));
    replace_slot(slots, layout.record_stream, &g_record_stream, &record_stream);
}

void note_block_stream(uint64_t block, uint64_t stream) {
    (void)take_uses(block, nullptr, 0);  // left over from a free that was not seen
    if (stream != 0 && stream != kStreamUnknown) {
        torch_note_special_block();
        (void)g_own_streams.insert(block, stream);
    } else if (!g_own_streams.empty()) {
        uint64_t stale = 0;
        (void)g_own_streams.take(block, &stale);
    }
}

uint32_t defer_free(uint64_t block, uint16_t device, bool has_events, PendingOn* pending) {
    uint64_t own = 0;
    Use uses[kMaxPendingEvents];
    (void)g_own_streams.take(block, &own);
    const uint32_t use_count = take_uses(block, uses, kMaxPendingEvents);
    if (use_count == 0 || has_events || !may_capture(device)) {
        return 0;
    }
    if (!g_lock.lock_within(kPatience_ns)) {
        torch_pools_incomplete(kFreesLost);
        return 0;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < use_count && g_end < kMaxDeferred; ++i) {
        if (uses[i].stream != own) {
            const uint64_t number = kDeferredEvent | ++g_numbers;
            g_deferred[g_end++] = {number, uses[i].stream, device, uses[i].in_capture};
            count_up(&g_waiting);
            pending[count++] = {number, uses[i].stream};
        }
    }
    const bool full = g_end == kMaxDeferred;
    g_lock.unlock();
    if (full) {
        torch_pools_incomplete(kFreesLost);
    }
    return count;
}

uint64_t take_deferred_event(uint64_t stream) {
    return take_deferred([&](const Deferred& deferred) { return deferred.stream == stream; },
                         [](const Deferred& deferred) { return !deferred.in_capture; });
}

void complete_deferred_frees(uint16_t device) {
    if (load_acquire(&g_waiting) == 0) [[likely]] {
        return;
    }
    const auto is_over = [device](const Deferred& deferred) {
        return (device == kDeviceUnknown || device == deferred.device) &&
               !may_capture(deferred.device);
    };
    const auto first = [](const Deferred&) { return true; };
    while (const uint64_t number = take_deferred(is_over, first)) {
        EventRecord done{};
        done.kind = EventKind::kEventComplete;
        done.device = kDeviceUnknown;
        done.extra = number;
        done.stream = kStreamUnknown;
        record(done);
    }
}

}  // namespace fragtrace::preload
