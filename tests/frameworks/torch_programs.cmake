# A pluggable allocator as users write it. The process provides the functions that it calls.
add_library(plain_allocator SHARED ${CMAKE_CURRENT_LIST_DIR}/programs/plain_allocator.c)
target_link_options(plain_allocator PRIVATE -Wl,-z,undefs)
set_target_properties(plain_allocator PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
framework_test(torch_programs test_torch_programs.py TIMEOUT 900)
# The older release is a separate test. It is skipped by name if the release is missing.
framework_test(torch_programs_older test_torch_programs_older.py ARGUMENTS OlderPrograms TIMEOUT 900)
framework_test(torch_programs_older_pools test_torch_programs_older.py ARGUMENTS OlderPoolsForOthers)
