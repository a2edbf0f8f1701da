# fragtrace_warnings(TARGET): the warnings for all targets of this project. -Wrestrict is off for
# GCC 12, which wrongly reports overlapping copies inside std::string's operator+.
function(fragtrace_warnings target)
    target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion>
        $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,12>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
        $<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<BOOL:${FRAGTRACE_WERROR}>>:-Werror>)
endfunction()

# fragtrace_sanitize(TARGET): the sanitizers of the build preset. Not for libraries that other
# people's processes load (preload/): a sanitizer's runtime must be the first library in a process.
function(fragtrace_sanitize target)
    if(FRAGTRACE_SANITIZE)
        target_compile_options(${target} PRIVATE -fsanitize=${FRAGTRACE_SANITIZE}
                               -fno-sanitize-recover=all -fno-omit-frame-pointer)
        target_link_options(${target} PUBLIC -fsanitize=${FRAGTRACE_SANITIZE})
    endif()
endfunction()

# fragtrace_alone(FILE...): source files with names that other files of their target have, too.
function(fragtrace_alone)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# fragtrace_unity(TARGET): with FRAGTRACE_UNITY_BUILD its source files are compiled several at a time,
# because most of the time goes into headers that they share.
function(fragtrace_unity target)
    if(FRAGTRACE_UNITY_BUILD)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
        # A class may have a member whose type is in an unnamed namespace of its only file.
        target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    endif()
endfunction()
