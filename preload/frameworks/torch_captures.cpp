#include "frameworks/torch_captures.h"

#include "frameworks/torch_state.h"
#include "hooks/framework.h"
#include "hooks/graphs_cuda.h"
#include "system/sys.h"

namespace fragtrace::preload {
namespace {

using MarkCapture = void(void* self, int device);

struct Originals {
    MarkCapture* begin;
    MarkCapture* end;
};

Originals g_original;

constexpr uint32_t kDevices = 256;  // device ordinals are one byte
int32_t g_routings[kDevices];
int32_t g_captures[kDevices];  // if the allocator is notified of captures
bool g_told;

void count(int32_t* counts, int device, int change) {
    __atomic_fetch_add(&counts[torch_device(device) % kDevices], change, __ATOMIC_ACQ_REL);
}

void mark_capture_begin(void* self, int device) {
    g_original.begin(self, device);
    torch_note_special_block();
    count(g_captures, device, 1);
}

void mark_capture_end(void* self, int device) {
    g_original.end(self, device);
    count(g_captures, device, -1);
}

}  // namespace

void watch_captures(void** slots, const PoolSlots& layout) {
    replace_slot(slots, layout.mark_capture_begin, &g_original.begin, &mark_capture_begin);
    replace_slot(slots, layout.mark_capture_end, &g_original.end, &mark_capture_end);
    g_told = layout.mark_capture_begin != kNoSlot;
    // If a known release had these functions, they would be between the other two. If nothing is
    // there, captures are not marked, as before 2.13.
    const bool known =
        g_told || layout.end_to_pool == kNoSlot || layout.release_pool == layout.end_to_pool + 1;
    record_fact("torch.captures", known ? "recorded" : "unknown: no known way of marking them");
}

void count_routing(int device, int change) {
    count(g_routings, device, change);
}

bool may_capture(uint16_t device) {
    const int32_t* counts = g_told ? g_captures : g_routings;
    if (device != kDeviceUnknown) {
        return __atomic_load_n(&counts[device % kDevices], __ATOMIC_ACQUIRE) > 0;
    }
    for (uint32_t i = 0; i < kDevices; ++i) {
        if (__atomic_load_n(&counts[i], __ATOMIC_RELAXED) > 0) {
            return true;
        }
    }
    return false;
}

bool is_in_capture(uint16_t device) {
    return may_capture(device) && (!g_told || is_captured(current_stream(device)));
}

bool is_captured(uint64_t stream) {
    return stream != kStreamUnknown &&
           capturing_graph<Hook::k_cuStreamGetCaptureInfo_v2>(
               reinterpret_cast<void*>(stream),
               reinterpret_cast<const void*>(g_torch.cuda_range.begin)) != nullptr;
}

}  // namespace fragtrace::preload
