# A pluggable allocator as users write it. The process provides the functions that it calls.
add_library(plain_allocator SHARED ${CMAKE_CURRENT_LIST_DIR}/programs/plain_allocator.c)
target_link_options(plain_allocator PRIVATE -Wl,-z,undefs)
set_target_properties(plain_allocator PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
framework_test(torch_programs test_torch_programs.py TIMEOUT 900)
# A separate test, because it can be skipped: features that the older release lacks.
framework_test(torch_programs_older test_torch_programs_older.py ARGUMENTS OlderPrograms TIMEOUT 900)
framework_test(torch_programs_older_pools test_torch_programs_older.py ARGUMENTS OlderPoolsForOthers)
