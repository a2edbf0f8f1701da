// Shared by all files of the virtual CUDA runtime: the driver's functions, the calling thread's
// context and its last error. The functions are looked up as NVIDIA's runtime does (dlopen, dlsym,
// cuGetProcAddress). Every call reaches the driver through these pointers, so a tool that
// interposes there sees it.
#pragma once

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#include "common/stub.h"

#include <cuda.h>
#include <cudaTypedefs.h>

namespace fragtrace::vgpu {

struct DriverFunctions {
#define FT_DRIVER(name, version) PFN_##name##_v##version name##_;
#include "runtime/driver_functions.def"
#undef FT_DRIVER
    PFN_cuGetProcAddress_v12000 get_proc_address;
};

// Loads and initialises the driver once per process. Other threads wait. All later calls return the
// same error.
cudaError_t load_driver(const DriverFunctions** driver);

// Like load_driver(), and makes a context current on this thread: device 0's primary context if no
// device was chosen.
cudaError_t enter(const DriverFunctions** driver);

cudaError_t set_device(int device);
cudaError_t context_of_device(int device, CUcontext* context);  // its primary context

// Stores a failure as this thread's last error and returns it.
cudaError_t finish(cudaError_t error);

inline cudaError_t finish(CUresult result) {
    return finish(static_cast<cudaError_t>(result));
}

cudaError_t last_error(bool clear);

}  // namespace fragtrace::vgpu

// Declare `driver` with the driver's functions, without and with a current context.
#define FT_DRIVER_ONLY()                                                      \
    const ::fragtrace::vgpu::DriverFunctions* driver = nullptr;               \
    if (const cudaError_t ft_error = ::fragtrace::vgpu::load_driver(&driver)) \
    return ::fragtrace::vgpu::finish(ft_error)

#define FT_CONTEXT()                                                    \
    const ::fragtrace::vgpu::DriverFunctions* driver = nullptr;         \
    if (const cudaError_t ft_error = ::fragtrace::vgpu::enter(&driver)) \
    return ::fragtrace::vgpu::finish(ft_error)

// Implements a runtime function as one driver function with a context.
#define FT_FORWARD(name, ...)                                           \
    do {                                                                \
        FT_CONTEXT();                                                   \
        return ::fragtrace::vgpu::finish(driver->name##_(__VA_ARGS__)); \
    } while (false)
