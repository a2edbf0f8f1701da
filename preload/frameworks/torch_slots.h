// Slots of the allocator's virtual functions in the loaded release of PyTorch.
//
// The native allocator's functions have no symbols. But libtorch_cuda (libtorch_python before 2.2)
// exports a second class with the same base, CUDAPluggableAllocator: its virtual table, and a
// symbol for every function that it overrides. The position of a symbol's address in that table is
// the slot of the function in this very library, and the mangled name has its parameters. So no
// slot number is written by hand, and a release that changes a function is noticed.
#pragma once

namespace fragtrace::preload {

// A slot number, or kNoSlot if the release does not have this function with these parameters.
inline constexpr int kNoSlot = -1;

struct PoolSlots {
    int raw_alloc = kNoSlot;              // (size_t)
    int raw_alloc_with_stream = kNoSlot;  // (size_t, cudaStream_t)
    int empty_cache = kNoSlot;            // () or, empty_cache_has_pool, (MempoolId_t)
    bool empty_cache_has_pool = false;
    int set_memory_fraction = kNoSlot;    // (double, device)
    int enable = kNoSlot;                 // (bool)                                        2.5 on
    int begin_to_pool = kNoSlot;          // (device, MempoolId_t, std::function)          2.2 on
    int end_to_pool = kNoSlot;            // (device, MempoolId_t)                         2.2 on
    int mark_capture_begin = kNoSlot;     // (device)                                      2.13 on
    int mark_capture_end = kNoSlot;       // (device)                                      2.13 on
    int begin_stream_to_pool = kNoSlot;   // (device, cudaStream_t, MempoolId_t)           2.1
    int end_stream_to_pool = kNoSlot;     // (device, cudaStream_t)                        2.1
    int capture_begin = kNoSlot;          // (device, graph, MempoolId_t)                  2.0
    int capture_about_to_end = kNoSlot;   // (device, graph)                               2.0
    int release_pool = kNoSlot;           // (device, MempoolId_t)
    int add_user = kNoSlot;               // (device, MempoolId_t, ...)                    2.6 on
    bool add_user_has_allocator = false;  // ... an allocator                              2.8 on
    int use_on_oom = kNoSlot;             // (device, MempoolId_t, ...)                    2.8 on
    int no_split = kNoSlot;               // (device, MempoolId_t)                         2.10 on
    int set_user_metadata = kNoSlot;      // (const std::string&)                          2.15
    int annotate_memory = kNoSlot;        // (const void*, const std::string&)             2.15
    int record_stream = kNoSlot;          // (const DataPtr&, CUDAStream)
    int set_checkpoint = kNoSlot;         // (device, shared_ptr) -> CheckpointDelta
};

// Returns false if the second class is missing, or if its table and the native allocator's table
// (`slots`, with `slot_count` entries) differ in shape.
bool find_pool_slots(void* const* slots, int slot_count, PoolSlots* found);

// Puts `wrapper` into a table and stores the replaced function in `original`, for the wrapper to
// call.
template <typename Function>
void replace_slot(void** slots, int slot, Function** original, Function* wrapper) {
    if (slot != kNoSlot) {
        *original = reinterpret_cast<Function*>(slots[slot]);
        slots[slot] = reinterpret_cast<void*>(wrapper);
    }
}

}  // namespace fragtrace::preload
