# zstd and libunwind are built into the recorder with hidden symbols. So the recorder does not use
# the program's copies of these libraries, and the program does not use the recorder's. Debian's
# static libraries are not position independent, so both are built from Debian's sources.
# scripts/setup downloads these, and CMake looks for them in FRAGTRACE_SOURCES. The lines below have
# their paths in Debian's pool, and their checksums.
include(ExternalProject)

set(sources $ENV{XDG_CACHE_HOME})
if(NOT sources)
    set(sources $ENV{HOME}/.cache)
endif()
set(FRAGTRACE_SOURCES ${sources}/fragtrace/sources CACHE PATH "Sources of zstd and libunwind, as scripts/setup downloads them")

find_program(FRAGTRACE_MAKE NAMES gmake make REQUIRED)
# initial-exec: the loader places thread-local variables of a preloaded library in static memory, so
# access never allocates.
set(flags "-O2 -g0 -DNDEBUG -fPIC -fvisibility=hidden -ftls-model=initial-exec -ffunction-sections -fdata-sections")

# fragtrace_library(NAME SOURCE ARCHIVE INCLUDES COMMANDS...): defines the target NAME, the static
# library that the commands of ExternalProject_Add build from the source.
function(fragtrace_library name source archive includes)
    fragtrace_source(file ${source})
    list(GET ${source} 1 checksum)
    set(prefix ${CMAKE_CURRENT_BINARY_DIR}/${name})
    ExternalProject_Add(build_${name}
        URL ${file}
        URL_HASH SHA256=${checksum}
        # The archive's own times would make configure's files look out of date.
        DOWNLOAD_EXTRACT_TIMESTAMP TRUE
        PREFIX ${prefix}
        SOURCE_DIR ${prefix}/source
        BINARY_DIR ${prefix}/build
        INSTALL_COMMAND ""
        BUILD_BYPRODUCTS ${prefix}/${archive}
        LOG_CONFIGURE TRUE
        LOG_BUILD TRUE
        LOG_OUTPUT_ON_FAILURE TRUE
        ${ARGN})
    add_library(${name} STATIC IMPORTED)
    # Not as system headers: zig would find its own libunwind.h first.
    set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${prefix}/${archive} SYSTEM OFF)
    list(TRANSFORM includes PREPEND ${prefix}/)
    file(MAKE_DIRECTORY ${includes})
    target_include_directories(${name} INTERFACE ${includes})
    add_dependencies(${name} build_${name})
endfunction()

# Only the compressor is built, because the recorder never decompresses.
fragtrace_library(fragtrace_zstd FRAGTRACE_ZSTD source/lib/libzstd.a source/lib
    CONFIGURE_COMMAND ${CMAKE_COMMAND} -E true
    BUILD_COMMAND ${FRAGTRACE_MAKE} -C <SOURCE_DIR>/lib libzstd.a
        CC=${CMAKE_C_COMPILER} AR=${CMAKE_AR} "CFLAGS=${flags}" "CPPFLAGS_STATLIB=-DZSTDLIB_VISIBLE= -DZSTDERRORLIB_VISIBLE= -DZSTD_TRACE=0"
        ZSTD_LIB_DECOMPRESSION=0 ZSTD_LIB_DICTBUILDER=0 ZSTD_LIB_DEPRECATED=0 ZSTD_LEGACY_SUPPORT=0)

set(host "")
if(CMAKE_CROSSCOMPILING)
    set(host --host=${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
endif()
fragtrace_library(fragtrace_libunwind FRAGTRACE_LIBUNWIND build/src/.libs/libunwind.a
    "build/include;source/include"
    PATCH_COMMAND ${CMAKE_COMMAND} -DSOURCE=<SOURCE_DIR> -DPROCESSOR=${CMAKE_SYSTEM_PROCESSOR}
        -P ${PROJECT_SOURCE_DIR}/scripts/cmake/libunwind_changes.cmake
    CONFIGURE_COMMAND <SOURCE_DIR>/configure --quiet ${host} --disable-shared --enable-static --with-pic
        --disable-minidebuginfo --disable-coredump --disable-ptrace --disable-setjmp
        --disable-documentation --disable-tests --disable-cxx-exceptions --disable-debug-frame
        CC=${CMAKE_C_COMPILER} AR=${CMAKE_AR} RANLIB=${CMAKE_RANLIB}
        "CFLAGS=${flags} -Wno-incompatible-pointer-types"
    # An interrupted build may have left a .la file without its archive.
    BUILD_COMMAND ${FRAGTRACE_MAKE} -C src clean
    COMMAND ${FRAGTRACE_MAKE} -C src CPPFLAGS=-D_GNU_SOURCE)
