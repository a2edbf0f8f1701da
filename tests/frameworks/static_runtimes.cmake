# Packages with the CUDA runtime linked statically. Without an interpreter with one of them, its tests
# are skipped by name.
set(FRAGTRACE_WARP_PYTHON "" CACHE FILEPATH "Interpreter with Warp, for a test")
set(FRAGTRACE_CTRANSLATE2_PYTHON "" CACHE FILEPATH "Interpreter with CTranslate2, for a test")

# The process provides the runtime that it calls.
add_library(warp_memory MODULE ${CMAKE_CURRENT_LIST_DIR}/programs/warp_memory.c)
target_link_options(warp_memory PRIVATE -Wl,-z,undefs)
set_target_properties(warp_memory PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

fragtrace_add_python_test(NAME static_runtimes SCRIPT test_static_runtimes.py LABELS frameworks
    ENVIRONMENT FRAGTRACE_WARP_PYTHON=${FRAGTRACE_WARP_PYTHON}
                FRAGTRACE_CTRANSLATE2_PYTHON=${FRAGTRACE_CTRANSLATE2_PYTHON}
                FRAGTRACE_WARP_MEMORY=$<TARGET_FILE:warp_memory>)
