// Frees that wait for other streams.
//
// When a block used on other streams is freed, libc10_cuda records one event per stream and then
// reports the free, on the same thread; it reuses the block once it has seen all events complete.
// libc10_cuda records events for others too (c10's device guard, on behalf of c10::Event); those
// calls come from a virtual function of the guard and are told apart by it.
#include "frameworks/torch_deferred.h"
#include "frameworks/torch_state.h"
#include "hooks/framework.h"
#include "system/address_table.h"

namespace fragtrace::preload {
namespace {

// Events that a recorded free waits for. The value: above the
// device's 16 bits what the trace knows the event by, where that is not its handle.
AddressTable<uint64_t, 8192> g_pending;
constexpr uint64_t kNumberShift = 16;

// ---- whose call of cudaEventRecord it is --------------------------------------------------------

constexpr int kMaxGuardFunctions = 64;
constexpr int kMaxCallSites = 16;

struct CallSite {
    const void* address;  // return address, nullptr = free
    bool of_guard;
};

CallSite g_call_sites[kMaxCallSites];

// True if the function that contains `address` is a virtual function of c10's CUDA device guard.
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
    static int lock = 0;  // writers only; whoever comes second looks again next time
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
        // Known before the record is out: the pool's mutex keeps queries away until we return.
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
    if (current_request() != nullptr || frame_lives(thread.emptying)) {  // and not a free
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
        count_up(&g_addresses_without_room);
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
