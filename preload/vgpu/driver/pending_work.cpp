// Work that ends later than it is issued: a collective ends when its peers have come. Streams and
// events hold the set of works that they wait for. There is no queue: other work on a stream is
// complete at once, also behind a pending collective.
#include "driver/capture.h"

#include <time.h>

namespace fragtrace::vgpu {
namespace {

struct Pending {
    uint64_t start;  // the work's number
    uint64_t size;   // 1
};

SortedArray<Pending> g_pending;
uint64_t g_last_work;
void (*g_progress)();

bool is_over(uint64_t work) {
    return g_pending.find_start(work) == nullptr;
}

// Waits until `ready`, called with the lock held, returns true. The sleep grows to 1 ms: many ranks
// may share a core.
template <typename Ready>
void wait_until(Ready ready) {
    constexpr long kLongestNs = 1000000;
    for (long sleep_ns = 20000;; sleep_ns = sleep_ns < kLongestNs ? sleep_ns * 2 : kLongestNs) {
        make_progress();
        {
            const StateLock lock;
            if (ready()) return;
        }
        const timespec moment{0, sleep_ns};
        nanosleep(&moment, nullptr);
    }
}

bool nothing_pending() {
    return __atomic_load_n(&g_progress, __ATOMIC_ACQUIRE) == nullptr;
}

uint64_t begin_on_stream(void* stream, uint64_t address, size_t bytes) {
    const StateLock lock;
    WorkSet* set = works_of(static_cast<CUstream>(stream));
    if (set == nullptr || captured(static_cast<CUstream>(stream), CU_GRAPH_NODE_TYPE_KERNEL))
        return 0;
    const uint64_t work = begin_work();
    if (work == 0) return 0;
    add(set, work);
    if (bytes > 0) note_pending(address, bytes, work);
    return work;
}

void end_with(uint64_t work, const void* result) {
    const StateLock lock;
    note_delivered(work, result);
    end_work(work);
}

void set_progress(void (*progress)()) {
    __atomic_store_n(&g_progress, progress, __ATOMIC_RELEASE);
}

Known read_waiting(uint64_t address, void* out, size_t bytes) {
    wait_for_contents(address, bytes);
    const StateLock lock;
    return read_contents(address, out, bytes);
}

void write_now(uint64_t address, const void* bytes, size_t size) {
    const StateLock lock;
    if (bytes != nullptr) {
        note_host_write(address, bytes, size);
    } else {
        note_unknown(address, size);
    }
}

bool run_kernel(void* stream) {
    const StateLock lock;
    return !captured(static_cast<CUstream>(stream), CU_GRAPH_NODE_TYPE_KERNEL);
}

constexpr DriverInterface kInterface = {
    begin_on_stream, end_with, set_progress, read_waiting, run_kernel, write_now};

}  // namespace

uint64_t begin_work() {
    const uint64_t work = ++g_last_work;
    return g_pending.insert({work, 1}) != nullptr ? work : 0;
}

void end_work(uint64_t work) {
    Pending* slot = g_pending.find_start(work);
    if (slot != nullptr) g_pending.erase(slot);
}

bool complete(WorkSet* set) {
    int kept = 0;
    for (int i = 0; i < set->count; ++i) {
        if (!is_over(set->works[i])) set->works[kept++] = set->works[i];
    }
    set->count = kept;
    return kept == 0;
}

void add(WorkSet* set, uint64_t work) {
    complete(set);
    for (int i = 0; i < set->count; ++i) {
        if (set->works[i] == work) return;
    }
    void* grown =
        realloc(static_cast<void*>(set->works), sizeof(uint64_t) * size_t(set->count + 1));
    if (grown == nullptr) return;
    set->works = static_cast<uint64_t*>(grown);
    set->works[set->count++] = work;
}

void add(WorkSet* set, const WorkSet& from) {
    for (int i = 0; i < from.count; ++i) {
        if (!is_over(from.works[i])) add(set, from.works[i]);
    }
}

void clear(WorkSet* set) {
    free(set->works);
    *set = {};
}

void make_progress() {
    void (*progress)() = __atomic_load_n(&g_progress, __ATOMIC_ACQUIRE);
    if (progress != nullptr) progress();
}

void wait_for(CUstream stream) {
    if (nothing_pending()) return;
    wait_until([stream] { return stream_is_ready(stream); });
}

void wait_for_contents(uint64_t address, size_t size) {
    if (nothing_pending()) return;
    wait_until([address, size] { return !is_pending(address, size); });
}

void wait_for_event(CUevent event) {
    if (nothing_pending()) return;
    wait_until([event] { return event_is_ready(event); });
}

void wait_for_device(int device) {
    if (nothing_pending()) return;
    wait_until([device] { return device_is_ready(device); });
}

}  // namespace fragtrace::vgpu

FT_EXPORT const fragtrace::vgpu::DriverInterface* fragtrace_vgpu_driver_interface() {
    return &fragtrace::vgpu::kInterface;
}
