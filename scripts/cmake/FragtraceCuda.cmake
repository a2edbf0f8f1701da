# Finds the CUDA headers (required) and nvcc (for some tests only). Order: FRAGTRACE_CUDA_ROOT
# (without a toolkit, scripts/setup sets it to NVIDIA's PyPI wheels), then an installed CUDA
# Toolkit. CUDA is never linked.
set(FRAGTRACE_CUDA_ROOT "" CACHE PATH "Folder with CUDA's include/ and, for the tests, bin/nvcc")
if(FRAGTRACE_CUDA_ROOT)
    find_path(FRAGTRACE_CUDA_INCLUDE cuda.h PATHS ${FRAGTRACE_CUDA_ROOT}/include NO_DEFAULT_PATH)
    find_program(FRAGTRACE_NVCC nvcc PATHS ${FRAGTRACE_CUDA_ROOT}/bin NO_DEFAULT_PATH)
else()
    find_package(CUDAToolkit QUIET)
    if(CUDAToolkit_FOUND)
        list(GET CUDAToolkit_INCLUDE_DIRS 0 FRAGTRACE_CUDA_INCLUDE)
        set(FRAGTRACE_CUDA_ROOT ${CUDAToolkit_LIBRARY_ROOT})
        set(FRAGTRACE_NVCC ${CUDAToolkit_NVCC_EXECUTABLE})
    endif()
endif()
if(NOT FRAGTRACE_CUDA_INCLUDE)
    message(FATAL_ERROR "CUDA headers (cuda.h) not found. Install the CUDA Toolkit, or run "
                        "scripts/setup, which takes them from NVIDIA's PyPI packages, or give "
                        "-DFRAGTRACE_CUDA_ROOT=DIR.")
endif()
add_library(fragtrace_cuda_headers INTERFACE)
target_include_directories(fragtrace_cuda_headers SYSTEM INTERFACE ${FRAGTRACE_CUDA_INCLUDE})
message(STATUS "CUDA headers: ${FRAGTRACE_CUDA_INCLUDE}; nvcc: ${FRAGTRACE_NVCC}")
