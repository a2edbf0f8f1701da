// Frees that wait for other streams.
//
// When a block that other streams used is freed, libc10_cuda records one CUDA event per stream.
// Then it reports the free, on the same thread. It reuses the block once it has seen all events
// complete. libc10_cuda also records events for others (c10's device guard, for c10::Event). Those
// calls come from a virtual function of the guard, which distinguishes them.
#include "frameworks/torch_deferred.h"
#include "frameworks/torch_state.h"
#include "hooks/framework.h"
#include "system/address_table.h"

namespace fragtrace::preload {
namespace {

// CUDA events that recorded frees wait for. The low 16 bits of the value are the device. The bits
// above are the event's number in the trace, if the trace does not use the handle.
AddressTable<uint64_t, 8192> g_pending;
constexpr uint64_t kNumberShift = 16;

// ---- the caller of cudaEventRecord --------------------------------------------------------------

constexpr int kMaxGuardFunctions = 64;
constexpr int kMaxCallSites = 16;

struct CallSite {
    const void* address;  // return address, nullptr = free
    bool of_guard;
};

CallSite g_call_sites[kMaxCallSites];

// Returns true if the function that contains `address` is a virtual function of c10's CUDA device
// guard.
bool lies_in_guard(const void* address) {
    constexpr int kCuda = 1;  // c10::DeviceType
    const void* function = function_start(address);
    const link_map* core = find_object("libc10.so");
    bool indirect = false;
    const auto* registry = core == nullptr
                               ? nullptr
                               : static_cast<void**>(defined_symbol(
                                     core, "_ZN3c104impl26device_guard_impl_registryE", &indirect));
    if (function == nullptr || registry == nullptr || registry[kCuda] == nullptr) {
        return false;
    }
    const void* const* table = *static_cast<void***>(registry[kCuda]);
    for (int i = 0; i < kMaxGuardFunctions && table[i] != nullptr && is_code(table[i]); ++i) {
        if (table[i] == function) {
            return true;
        }
    }
    return false;
}

bool is_guard_call(const void* caller) {
    for (CallSite& site : g_call_sites) {
        const void* known = __atomic_load_n(&site.address, __ATOMIC_ACQUIRE);
        if (known == caller) {
            return site.of_guard;
        }
        if (known == nullptr) {
            break;
        }
    }
    const bool of_guard = lies_in_guard(caller);
    static int lock = 0;  // for writers only; a thread that fails to lock it tries again at its
                          // next call
    if (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) == 0) {
        for (CallSite& site : g_call_sites) {
            if (site.address == nullptr) {
                site.of_guard = of_guard;
                __atomic_store_n(&site.address, caller, __ATOMIC_RELEASE);
                break;
            }
        }
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    }
    return of_guard;
}

}  // namespace

uint32_t take_pending_events(uint64_t block, uint16_t device) {
    TorchThread& thread = torch_thread();
    const uint32_t count = thread.pending_count;
    for (uint32_t i = 0; i < count; ++i) {
        EventRecord event{};
        event.kind = EventKind::kPendingEvent;
        event.device = device;
        event.address = block;
        event.extra = thread.pending[i].event;
        event.stream = thread.pending[i].stream;
        // Inserted before the event is recorded: the allocator's mutex prevents queries until this
        // returns.
        if ((event.extra & kDeferredEvent) == 0) {
            (void)g_pending.insert(event.extra, device);
        }
        record(event);
    }
    thread.pending_count = 0;
    return count;
}

void torch_event_recorded(const void* caller, void* event, void* stream) {
    if (!torch_owns(caller) || !recording_enabled() || !torch_is_native() ||
        is_guard_call(caller)) {
        return;
    }
    TorchThread& thread = torch_thread();
    if (current_request() != nullptr || frame_lives(thread.emptying)) {  // so it is not for a free
        const uint64_t number = take_deferred_event(reinterpret_cast<uint64_t>(stream));
        if (number != 0) {
            (void)g_pending.insert(reinterpret_cast<uint64_t>(event),
                                   number << kNumberShift | kDeviceUnknown);
            return;
        }
    }
    if (thread.pending_count < kMaxPendingEvents) {
        auto& pending = thread.pending[thread.pending_count++];
        pending.event = reinterpret_cast<uint64_t>(event);
        pending.stream = reinterpret_cast<uint64_t>(stream);
    } else {
        count_up(&g_events_without_room);
    }
}

void torch_event_complete(const void* caller, void* event) {
    uint64_t known = 0;
    if (!torch_owns(caller) || !recording_enabled() ||
        !g_pending.take(reinterpret_cast<uint64_t>(event), &known)) {
        return;
    }
    EventRecord done{};
    done.kind = EventKind::kEventComplete;
    const uint64_t number = known >> kNumberShift;
    done.device = static_cast<uint16_t>(known);
    done.extra = number != 0 ? kDeferredEvent | number : reinterpret_cast<uint64_t>(event);
    done.stream = kStreamUnknown;
    record(done);
}

}  // namespace fragtrace::preload
