# Compares the simulated allocator with that of an installed PyTorch (docs/pools.md).
add_executable(simulated_allocator ${CMAKE_CURRENT_LIST_DIR}/allocator/simulated_allocator.cpp)
target_link_libraries(simulated_allocator PRIVATE fraganalyze_library)
fragtrace_warnings(simulated_allocator)
fragtrace_sanitize(simulated_allocator)
# The real side is compiled if a PyTorch is configured.
file(WRITE ${CMAKE_BINARY_DIR}/allocator/cuda_include.txt "${FRAGTRACE_CUDA_INCLUDE}")
framework_test(torch_allocator test_allocator.py TIMEOUT 900
               ENVIRONMENT CXX=${CMAKE_CXX_COMPILER})
