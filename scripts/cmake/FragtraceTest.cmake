# fragtrace_add_test(NAME name COMMAND command... [LABELS label...] [TIMEOUT seconds]
#                    [ENVIRONMENT NAME=value...] [SERIAL] [PYTORCH])
#
# Adds a test that can skip itself with exit code 77. Its time limit (default: 120 s) is multiplied
# by FRAGTRACE_TEST_TIME. SERIAL: runs alone. PYTORCH: needs the interpreter FRAGTRACE_PYTHON;
# without it the test is reported as skipped, never as passed.
set(FRAGTRACE_TEST_TIME 1 CACHE STRING "Factor of the tests' time limits, for builds that run slowly")
set(FRAGTRACE_PYTHON "" CACHE FILEPATH "Interpreter with a CUDA build of PyTorch, for tests")

function(fragtrace_add_test)
    cmake_parse_arguments(arg "SERIAL;PYTORCH" "NAME;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
    if(NOT arg_NAME OR NOT arg_COMMAND OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "fragtrace_add_test: NAME and COMMAND are needed; "
                            "not understood: '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${FRAGTRACE_TEST_TIME}")
    if(arg_PYTORCH)
        list(APPEND arg_LABELS pytorch)
        if(NOT FRAGTRACE_PYTHON)
            set(arg_COMMAND ${CMAKE_COMMAND} -E env sh -c
                "echo 'skipped: no interpreter with PyTorch (-DFRAGTRACE_PYTHON=PATH)' && exit 77")
        endif()
    endif()
    add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND})
    set_tests_properties(${arg_NAME} PROPERTIES
        LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
        ENVIRONMENT "${arg_ENVIRONMENT}" RUN_SERIAL "${arg_SERIAL}")
endfunction()

# fragtrace_add_python_test(NAME name SCRIPT file [ARGUMENTS word...] [options of fragtrace_add_test]):
# a unittest file that runs real processes. Its environment names the built tree and the interpreter
# with PyTorch. ARGUMENTS such as `Class` or `Class.test` select tests.
find_package(Python3 COMPONENTS Interpreter QUIET)
function(fragtrace_add_python_test)
    cmake_parse_arguments(arg "" "NAME;SCRIPT" "ENVIRONMENT;ARGUMENTS" ${ARGN})
    fragtrace_add_test(NAME ${arg_NAME}
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPT} ${arg_ARGUMENTS}
        ENVIRONMENT PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/support
                    FRAGTRACE_BUILD=${CMAKE_BINARY_DIR} FRAGTRACE_PYTHON=${FRAGTRACE_PYTHON}
                    FRAGTRACE_SANITIZE=${FRAGTRACE_SANITIZE}
                    ${arg_ENVIRONMENT}
        ${arg_UNPARSED_ARGUMENTS})
endfunction()

# No optimizations: tests are compiled more often than run. -fPIC: programs can use the precompiled
# headers of a library only if both are compiled for the same kind of addresses.
set(fragtrace_test_flags -O0 -fPIC)
find_package(Threads REQUIRED)

# Makes a program one of Catch2. Its main() and the large headers are compiled once for all programs.
function(fragtrace_use_catch name)
    if(NOT TARGET fragtrace_catch_main)
        find_package(Catch2 REQUIRED)
        file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/catch_main.cpp
             CONTENT "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n")
        set_source_files_properties(${CMAKE_BINARY_DIR}/catch_main.cpp PROPERTIES
                                    SKIP_PRECOMPILE_HEADERS ON)
        file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cpp  # CMake needs a source that uses them
             CONTENT "const int fragtrace_test_headers_are_used = 1;\n")
        add_library(fragtrace_catch_main STATIC ${CMAKE_BINARY_DIR}/catch_main.cpp
                    ${CMAKE_BINARY_DIR}/test_headers.cpp)
        target_link_libraries(fragtrace_catch_main PUBLIC Catch2::Catch2 Threads::Threads)
        target_compile_options(fragtrace_catch_main PRIVATE ${fragtrace_test_flags})
        target_precompile_headers(fragtrace_catch_main PRIVATE <catch2/catch.hpp> <nlohmann/json.hpp>)
        fragtrace_sanitize(fragtrace_catch_main)
    endif()
    target_link_libraries(${name} PRIVATE fragtrace_catch_main)
    target_compile_options(${name} PRIVATE ${fragtrace_test_flags})
    target_precompile_headers(${name} REUSE_FROM fragtrace_catch_main)
    fragtrace_sanitize(${name}) # as the precompiled headers are
endfunction()

# fragtrace_add_unit_test(NAME name SOURCES file... [LIBRARIES target...] [LABELS label...]
#                         [TIMEOUT seconds] [ARGUMENTS word...] [APART tag...]):
# a Catch2 program. Test cases with a tag in APART become a test of their own, NAME_tag, because they
# may skip themselves (support/skip.h).
function(fragtrace_add_unit_test)
    cmake_parse_arguments(arg "" "NAME;TIMEOUT" "SOURCES;LIBRARIES;LABELS;ARGUMENTS;APART" ${ARGN})
    if(NOT arg_LABELS)
        set(arg_LABELS unit)
    endif()
    add_executable(${arg_NAME} ${arg_SOURCES})
    target_link_libraries(${arg_NAME} PRIVATE ${arg_LIBRARIES})
    fragtrace_use_catch(${arg_NAME})
    fragtrace_unity(${arg_NAME})
    fragtrace_warnings(${arg_NAME})
    target_include_directories(${arg_NAME} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support)
    list(TRANSFORM arg_APART REPLACE "(.+)" "~[\\1]" OUTPUT_VARIABLE others)
    string(CONCAT others ${others})
    set(full_disk FRAGTRACE_KEEP_FREE=0)  # also records where less than 10 % of the disk is free
    fragtrace_add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} ${arg_ARGUMENTS}${others}
                       LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} ENVIRONMENT ${full_disk})
    foreach(tag IN LISTS arg_APART)
        string(REPLACE "-" "_" test ${arg_NAME}_${tag})
        fragtrace_add_test(NAME ${test} COMMAND ${arg_NAME} [${tag}] LABELS ${arg_LABELS}
                           TIMEOUT ${arg_TIMEOUT} ENVIRONMENT ${full_disk})
    endforeach()
endfunction()
