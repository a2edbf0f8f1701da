// Common parts of all hooks: class Call (hook_call.h).
#include "hooks/hook_call.h"

#include "hooks/cuda_facts.h"
#include "hooks/framework.h"
#include "hooks/resolve.h"
#include "recorder/control.h"
#include "recorder/numbered_names.h"

namespace fragtrace::preload {
namespace {

// Nesting deeper than in any chain of interposers means that they call each other in a circle.
constexpr int kMaxDepth = 32;
constinit thread_local int t_depth __attribute__((tls_model("initial-exec"))) = 0;
// Total of all times that OwnTime has measured.
constinit thread_local uint64_t t_own_ns __attribute__((tls_model("initial-exec"))) = 0;
// Set while a call from a signal handler is refused: nested calls do not count as further losses.
constinit thread_local bool t_refusing __attribute__((tls_model("initial-exec"))) = false;

// Devices whose memory was sampled after their first allocation.
constexpr uint16_t kMaxDevices = 256;
uint8_t g_sampled[kMaxDevices];

// Recorded calls of all threads that may change memory, without nested calls. A call begins before
// its event and its real function, and ends after both. A child that was forked during a call
// cannot use CUDA, so the counters need no reset.
uint32_t g_calls_begun;
uint32_t g_calls_ended;

uint32_t saturated(uint64_t duration_ns) {
    return duration_ns > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(duration_ns);
}

}  // namespace

constinit thread_local uint32_t t_refusals __attribute__((tls_model("initial-exec"))) = 0;

Look::Look(uint32_t own_calls) : begun_(0), alone_(false) {
    const uint32_t ended = load_acquire(&g_calls_ended);
    begun_ = load_acquire(&g_calls_begun);
    alone_ = begun_ - ended == own_calls;
}

bool Look::settled() const {
    return alone_ && load_acquire(&g_calls_begun) == begun_;
}

Call::Call(Hook hook, Layer layer, const void* caller, Nested nested)
    : caller_(caller),
      refusals_before_(t_refusals),
      hook_(hook),
      layer_(layer),
      records_((scope_.outermost() || nested == Nested::kRecorded) && recording_enabled()),
      counted_(false),
      sane_(true),
      refused_(false) {
    if (scope_.outermost()) {
        t_depth = 0;  // not 0 if an exception passed through a hook
        t_refusing = false;
    } else if (!t_refusing && refuse_call_from_handler()) {
        refused_ = t_refusing = true;
    }
    records_ = records_ && !t_refusing;
    sane_ = ++t_depth <= kMaxDepth;
    counted_ = records_ && scope_.outermost() && hook != Hook::k_cuMemGetInfo_v2 &&
               hook != Hook::k_cudaMemGetInfo;
    if (counted_) {
        __atomic_fetch_add(&g_calls_begun, 1, __ATOMIC_SEQ_CST);
    }
}

Call::~Call() {
    if (counted_) {
        __atomic_fetch_add(&g_calls_ended, 1, __ATOMIC_RELEASE);
    }
    --t_depth;
    if (refused_) {
        t_refusing = false;
    }
}

uint16_t Call::current_device() const {
    int device = -1;
    if (layer_ == Layer::kRuntime) {
        auto* get = real<Hook::k_cudaGetDevice>(caller_);
        return get != nullptr && get(&device) == kSuccess ? ordinal(device) : kDeviceUnknown;
    }
    auto* get = real<Hook::k_cuCtxGetDevice>(caller_);
    return get != nullptr && get(&device) == kSuccess ? ordinal(device) : kDeviceUnknown;
}

uint16_t Call::device_of(uint64_t address) const {
    // Several devices share one address space, and emptying a cache frees memory of all devices
    // without making each one current.
    int device = -1;
    auto* attribute = real<Hook::k_cuPointerGetAttribute>(caller_);
    if (attribute != nullptr &&
        attribute(&device, kPointerAttributeDeviceOrdinal, address) == kSuccess && device >= 0) {
        return ordinal(device);
    }
    return current_device();
}

uint64_t Call::record(const Event& event) const {
    EventRecord record{};
    record.kind = event.kind;
    record.device = event.device;
    record.address = event.address;
    record.size = event.size;
    record.extra = event.extra;
    record.stream = event.stream;
    record.pool = event.pool;
    record.duration_ns = saturated(duration_ns_);
    record.flags = torch_device_flags(caller_, event.kind);
    const Stacks stacks = torch_stacks();
    record.native_stack = stacks.native;
    record.python_stack = stacks.python;
    return fragtrace::preload::record(record);
}

void Call::start() {
    if (records_) {
        own_before_ns_ = t_own_ns;
        start_ns_ = now_ns();
    }
}

void Call::stop() {
    if (records_) {
        const uint64_t total_ns = now_ns() - start_ns_;
        const uint64_t own_ns = t_own_ns - own_before_ns_;
        duration_ns_ = total_ns > own_ns ? total_ns - own_ns : 0;
    }
}

OwnTime::~OwnTime() {
    if (begin_ns_ != 0) {
        t_own_ns += now_ns() - begin_ns_;
    }
}

void Call::allocation(int result, const Event& event) {
    if (result == kSuccess) {
        if (event.address != 0) {
            record(event);
            if (event.kind != EventKind::kAddressReserve) {  // reserved address space uses no
                                                             // device memory
                record_first_use(event.device);
            }
        }
        return;
    }
    if (event.size == 0 || event.size == kUnknown64) {
        return;  // not a refusal of memory, or one that note_out_of_memory describes better
    }
    Event refusal = event;
    refusal.kind = EventKind::kAllocRefused;
    refusal.address = 0;
    refusal.extra = static_cast<uint64_t>(result);
    const uint64_t sequence = record(refusal);
    ++t_refusals;
    (void)sample_memory(event.device);
    if (result == kOutOfMemory) {
        record_other_processes(event.device, sequence, caller_);
    }
}

void Call::took(uint64_t sequence) const {
    if (sequence == 0) {
        return;
    }
    EventRecord record{};
    record.kind = EventKind::kCallTime;
    record.device = kDeviceUnknown;
    record.stream = kStreamUnknown;
    record.address = sequence;
    record.size = duration_ns_;
    fragtrace::preload::record(record);
}

void Call::note_out_of_memory(int result) {
    if (result != kOutOfMemory || t_refusals != refusals_before_) {
        return;
    }
    const uint16_t device = current_device();
    const uint64_t sequence = record({.kind = EventKind::kCallOutOfMemory,
                                      .device = device,
                                      .size = text_number(hook_info(hook_).name),
                                      .extra = static_cast<uint64_t>(result)});
    ++t_refusals;
    (void)sample_memory(device);
    record_other_processes(device, sequence, caller_);
}

void note_launch_out_of_memory(Hook hook,
                               Layer layer,
                               const void* caller,
                               uint32_t refusals_before) {
    const SlowPath slow_path;
    Call call(hook, layer, caller, Nested::kNotRecorded);
    if (call.records() && call.sane() && t_refusals == refusals_before) {
        call.note_out_of_memory(kOutOfMemory);
    }
}

void Call::record_first_use(uint16_t device) const {
    record_cuda_facts(caller_);
    if (device < kMaxDevices && __atomic_exchange_n(&g_sampled[device], 1, __ATOMIC_RELAXED) == 0) {
        const uint64_t free_bytes = sample_memory(device);
        if (free_bytes != kUnknown64) {
            record_context_bytes(device, free_bytes, caller_);
        }
    }
}

uint64_t Call::sample_memory(uint16_t device) const {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    const Look look(1);
    // Calls to the driver do not change the runtime's last error. Their results are about the
    // current context.
    int current = -1;
    auto* context_device = real<Hook::k_cuCtxGetDevice>(caller_);
    auto* driver_info = real<Hook::k_cuMemGetInfo_v2>(caller_);
    if (context_device == nullptr || context_device(&current) != kSuccess ||
        ordinal(current) != device || driver_info == nullptr ||
        driver_info(&free_bytes, &total_bytes) != kSuccess) {
        return kUnknown64;
    }
    EventRecord record{};
    record.kind = EventKind::kMemoryInfo;
    record.device = device;
    record.stream = kStreamUnknown;
    record.flags = static_cast<uint8_t>(kFlagByPool | (look.settled() ? 0 : kFlagUnsettled));
    record.size = free_bytes;
    record.extra = total_bytes;
    fragtrace::preload::record(record);
    return free_bytes;
}

void Call::memory_info(const Look& look, uint64_t free_bytes, uint64_t total_bytes) const {
    torch_note_free_memory(free_bytes);
    EventRecord record{};
    record.kind = EventKind::kMemoryInfo;
    record.device = current_device();
    record.stream = kStreamUnknown;
    record.duration_ns = saturated(duration_ns_);
    record.flags = static_cast<uint8_t>((torch_is_allocating(caller_) ? kFlagFromAllocator : 0) |
                                        (look.settled() ? 0 : kFlagUnsettled));
    record.size = free_bytes;
    record.extra = total_bytes;
    fragtrace::preload::record(record);
}

}  // namespace fragtrace::preload
