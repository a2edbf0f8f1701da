// What the hook bodies share: see hooks.h, class Call.
#include "hooks.h"

#include "facts_cuda.h"
#include "frameworks/torch.h"

#include <errno.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

// Deeper nesting than any chain of interposers has: they call each other in a circle.
constexpr int kMaxDepth = 32;
constinit thread_local int t_depth __attribute__((tls_model("initial-exec"))) = 0;
// While a call from a signal handler is refused: what it calls in turn is no further loss.
constinit thread_local bool t_refusing __attribute__((tls_model("initial-exec"))) = false;

// Devices whose memory was sampled after their first allocation.
constexpr uint16_t kMaxDevices = 256;
uint8_t g_sampled[kMaxDevices];

uint32_t saturated(uint64_t duration_ns) {
    return duration_ns > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(duration_ns);
}

class ErrnoKeeper {
  public:
    ErrnoKeeper() : saved_(errno) {}

    ~ErrnoKeeper() { errno = saved_; }

    ErrnoKeeper(const ErrnoKeeper&) = delete;
    ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

  private:
    int saved_;
};

}  // namespace

Call::Call(Layer layer, const void* caller)
    : caller_(caller),
      layer_(layer),
      records_(scope_.outermost() && recording_enabled()),
      sane_(true),
      refused_(false) {
    if (scope_.outermost()) {
        t_depth = 0;  // not so already if an exception passed through a hook
        t_refusing = false;
    } else if (!t_refusing && refuse_call_from_handler()) {
        refused_ = t_refusing = true;
    }
    sane_ = ++t_depth <= kMaxDepth;
}

Call::~Call() {
    --t_depth;
    if (refused_) {
        t_refusing = false;
    }
}

uint16_t Call::current_device() const {
    int device = -1;
    if (layer_ == Layer::kRuntime) {
        auto* get = real<Hook::k_cudaGetDevice>(caller_);
        if (get == nullptr || get(&device) != kSuccess) {
            return kDeviceUnknown;
        }
    } else {
        auto* get = real<Hook::k_cuCtxGetDevice>(caller_);
        if (get == nullptr || get(&device) != kSuccess) {
            return kDeviceUnknown;
        }
    }
    return device < 0 || device >= kDeviceUnknown ? kDeviceUnknown : static_cast<uint16_t>(device);
}

uint16_t Call::device_of(uint64_t address) const {
    // Several devices share one address space; emptying a cache frees on all of them without
    // making each current.
    int device = -1;
    auto* attribute = real<Hook::k_cuPointerGetAttribute>(caller_);
    if (attribute != nullptr &&
        attribute(&device, kPointerAttributeDeviceOrdinal, address) == kSuccess && device >= 0 &&
        device < kDeviceUnknown) {
        return static_cast<uint16_t>(device);
    }
    return current_device();
}

EventRecord Call::event(EventKind kind, uint16_t device) const {
    EventRecord record{};
    record.kind = kind;
    record.device = device;
    record.stream = kStreamUnknown;
    record.duration_ns = saturated(duration_ns_);
    record.flags = torch_is_allocating(caller_) ? kFlagFromAllocator : 0;
    return record;
}

void Call::allocated(EventKind kind, uint64_t address, uint64_t bytes, uint16_t device) const {
    const ErrnoKeeper keeper;
    EventRecord record = event(kind, device);
    record.address = address;
    record.size = bytes;
    const Stacks stacks = torch_stacks();
    record.native_stack = stacks.native;
    record.python_stack = stacks.python;
    fragtrace::preload::record(record);
    if (kind != EventKind::kAddressReserve) {  // address space alone is no memory
        record_first_use(device);
    }
}

void Call::record_first_use(uint16_t device) const {
    record_cuda_facts(caller_);
    if (device < kMaxDevices && __atomic_exchange_n(&g_sampled[device], 1, __ATOMIC_RELAXED) == 0) {
        sample_memory(device);
    }
}

void Call::sample_memory(uint16_t device) const {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    // The driver's call leaves the runtime's last error alone.
    auto* driver_info = real<Hook::k_cuMemGetInfo_v2>(caller_);
    if (driver_info == nullptr || driver_info(&free_bytes, &total_bytes) != kSuccess) {
        return;
    }
    EventRecord record = event(EventKind::kMemoryInfo, device);
    record.flags = kFlagByPool;
    record.duration_ns = 0;
    record.size = free_bytes;
    record.extra = total_bytes;
    fragtrace::preload::record(record);
}

void Call::refused(uint64_t bytes, int error, uint16_t device) const {
    const ErrnoKeeper keeper;
    EventRecord record = event(EventKind::kAllocRefused, device);
    record.size = bytes;
    record.extra = static_cast<uint64_t>(error);
    const Stacks stacks = torch_stacks();
    record.native_stack = stacks.native;
    record.python_stack = stacks.python;
    fragtrace::preload::record(record);
    sample_memory(device);
}

void Call::freeing(EventKind kind, uint64_t address, uint64_t bytes, uint16_t device) const {
    const ErrnoKeeper keeper;
    EventRecord record = event(kind, device);
    record.address = address;
    record.size = bytes;
    const Stacks stacks = torch_stacks();
    record.native_stack = stacks.native;
    record.python_stack = stacks.python;
    fragtrace::preload::record(record);
}

void Call::mapped(uint64_t address, uint64_t bytes, uint64_t handle, uint16_t device) const {
    const ErrnoKeeper keeper;
    EventRecord record = event(EventKind::kMap, device);
    record.address = address;
    record.size = bytes;
    record.extra = handle;
    const Stacks stacks = torch_stacks();
    record.native_stack = stacks.native;
    record.python_stack = stacks.python;
    fragtrace::preload::record(record);
}

void Call::memory_info(uint64_t free_bytes, uint64_t total_bytes) const {
    const ErrnoKeeper keeper;
    torch_note_free_memory(free_bytes);
    EventRecord record = event(EventKind::kMemoryInfo, current_device());
    record.size = free_bytes;
    record.extra = total_bytes;
    fragtrace::preload::record(record);
}

void Call::reset(uint16_t device) const {
    const ErrnoKeeper keeper;
    EventRecord record = event(EventKind::kDeviceReset, device);
    record.duration_ns = 0;
    fragtrace::preload::record(record);
}

}  // namespace fragtrace::preload
