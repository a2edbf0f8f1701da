// What the virtual driver offers the other stand-ins beyond CUDA's functions: the known contents of
// device memory, and work on a stream that ends later. The driver library exports one function,
// fragtrace_vgpu_driver_interface, which returns the table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fragtrace::vgpu {

// How much of a range of device memory is known.
enum class Known { kNothing, kPart, kAll, kPending };

struct DriverInterface {
    // Adds work to a stream. Until end_work, events that are recorded there later and the stream
    // itself are not ready. The result replaces `bytes` at `address`. Returns 0 if the stream is
    // invalid, or if it is capturing: the work is then a node of the graph that does nothing.
    uint64_t (*begin_work)(void* stream, uint64_t address, size_t bytes);
    // `result` has the bytes of begin_work, or is null if they are unknown.
    void (*end_work)(uint64_t work, const void* result);
    // A function that ends works whose time has come. The driver calls it without locks whenever a
    // program asks for, or waits for, an event or a stream.
    void (*set_progress)(void (*progress)());
    // Reads up to 1 MiB. Unknown bytes are zero. Waits for pending work that delivers a part.
    Known (*read)(uint64_t address, void* out, size_t bytes);
    // A kernel whose results the caller writes itself. Returns false if the stream is capturing.
    bool (*run_kernel)(void* stream);
    void (*write)(uint64_t address, const void* bytes, size_t size);  // null bytes: unknown
};

}  // namespace fragtrace::vgpu

extern "C" const fragtrace::vgpu::DriverInterface* fragtrace_vgpu_driver_interface();
