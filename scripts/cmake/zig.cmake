# A CMake toolchain: the compiler `zig` from PyPI, for glibc 2.28 and newer. Its C++ library is linked
# statically. scripts/build-wheels uses it. Besides `ziglang`, the interpreter Python3_EXECUTABLE has
# NVIDIA's packages with CUDA's headers. FRAGTRACE_PROCESSOR is the processor to build for, x86_64 or
# aarch64. The default is this machine's.
if(NOT FRAGTRACE_PROCESSOR)
    set(FRAGTRACE_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
endif()
if(NOT FRAGTRACE_PROCESSOR MATCHES "^(x86_64|aarch64)$")
    message(FATAL_ERROR "FRAGTRACE_PROCESSOR is ${FRAGTRACE_PROCESSOR}: only x86_64 and aarch64 are known")
endif()
if(NOT FRAGTRACE_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
    set(CMAKE_SYSTEM_NAME Linux)
    set(CMAKE_SYSTEM_PROCESSOR ${FRAGTRACE_PROCESSOR})
endif()
find_program(Python3_EXECUTABLE NAMES python3 REQUIRED)
execute_process(COMMAND ${Python3_EXECUTABLE} -c
    "import pathlib, ziglang, nvidia.cu13; print(pathlib.Path(ziglang.__file__).parent, list(nvidia.cu13.__path__)[0], sep=';')"
    OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(POP_FRONT packages FRAGTRACE_ZIG FRAGTRACE_CUDA_ROOT)

# CMake and configure scripts expect compilers and tools that are one word.
if(NOT FRAGTRACE_ZIG_FOLDER)
    set(FRAGTRACE_ZIG_FOLDER ${CMAKE_BINARY_DIR}/zig)
endif()
set(folder ${FRAGTRACE_ZIG_FOLDER})
set(target "-target ${FRAGTRACE_PROCESSOR}-linux-gnu.2.28")
foreach(tool "cc ${target}" "c++ ${target}" ar ranlib)
    string(REGEX MATCH "^[^ ]+" name "${tool}")
    file(CONFIGURE OUTPUT ${folder}/${name} CONTENT "#!/bin/sh\nexec '${FRAGTRACE_ZIG}/zig' ${tool} \"$@\"\n")
    file(CHMOD ${folder}/${name} FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
set(CMAKE_C_COMPILER ${folder}/cc)
set(CMAKE_CXX_COMPILER ${folder}/c++)
set(CMAKE_AR ${folder}/ar)
set(CMAKE_RANLIB ${folder}/ranlib)
# By default zig adds debug information, which takes a quarter of the time and is stripped anyway.
set(CMAKE_C_FLAGS_INIT -g0)
set(CMAKE_CXX_FLAGS_INIT -g0)
set(CMAKE_EXE_LINKER_FLAGS_INIT -s)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
# The projects by which CMake tries the compiler read this file, too.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES Python3_EXECUTABLE FRAGTRACE_ZIG_FOLDER FRAGTRACE_PROCESSOR)
