# The sources of the libraries that are built into fragtrace: their paths in Debian's pool, and their
# checksums. scripts/setup downloads those of the recorder, scripts/build-wheels all. A source package
# (sdist) contains them in its folder `sources`.

# In the recorder.
set(FRAGTRACE_ZSTD libz/libzstd/libzstd_1.5.4+dfsg2.orig.tar.xz
    8cf4bbb65e77ec348d052c8d6230eba66d435bddf64c8b5be2fcb16880c19953)
set(FRAGTRACE_LIBUNWIND libu/libunwind/libunwind_1.6.2.orig.tar.gz
    4a6aec666991fb45d0889c44aede8ad6eb108071c3554fcdff671f9c94794976)

# In the programs of a wheel (FRAGTRACE_BUNDLED_LIBRARIES), besides zstd.
set(FRAGTRACE_BUNDLED_CLI11 c/cli11/cli11_2.1.2+ds.orig.tar.xz
    8143d20b688e98ccce8e24562d3b68e5f47c12e896c42c7ca8553dbde5bed55d)
set(FRAGTRACE_BUNDLED_ELFUTILS e/elfutils/elfutils_0.188.orig.tar.bz2
    fb8b0e8d0802005b9a309c60c1d8de32dd2951b56f0c3a3cb56d21ce01595dff)
set(FRAGTRACE_BUNDLED_FMT f/fmtlib/fmtlib_9.1.0+ds1.orig.tar.gz
    84ce1c2d0be3a9863935137969dcec6970125caac032f82474640bfc81463583)
set(FRAGTRACE_BUNDLED_JSON n/nlohmann-json3/nlohmann-json3_3.11.2.orig.tar.gz
    d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273)
set(FRAGTRACE_BUNDLED_RE2 r/re2/re2_20220601+dfsg.orig.tar.xz
    3bc61251da3b0b97be40a8a127818c517c62516e4eda11fc901d29496663df54)
# Debian removed the generated tables of Unicode from the source above. They come from this release,
# which itself needs Abseil. The format of the tables is the same.
set(FRAGTRACE_BUNDLED_RE2_TABLES r/re2/re2_20240702.orig.tar.gz
    eb2df807c781601c14a260a507a5bb4509be1ee626024cb45acbd57cb9d4032b)
# The source of Perl's SQLite module contains SQLite as one file. Debian's own does not.
set(FRAGTRACE_BUNDLED_SQLITE libd/libdbd-sqlite3-perl/libdbd-sqlite3-perl_1.72.orig.tar.gz
    5ca41e61eb52b52bd862a3088b912a75fe70910ac789b9a9983e0a449e94f551)
set(FRAGTRACE_BUNDLED_ZLIB z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2
    71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1)

set(sources $ENV{XDG_CACHE_HOME})
if(NOT sources)
    set(sources $ENV{HOME}/.cache)
endif()
string(APPEND sources /fragtrace/sources)
if(EXISTS ${PROJECT_SOURCE_DIR}/sources)
    set(sources ${PROJECT_SOURCE_DIR}/sources)
endif()
set(FRAGTRACE_SOURCES ${sources} CACHE PATH "Sources of libraries, as scripts/setup downloads them")

# fragtrace_source(RESULT SOURCE): sets RESULT to the archive of a source, which is a list of its path
# in Debian's pool and its checksum.
function(fragtrace_source result source)
    list(GET ${source} 0 path)
    get_filename_component(file ${path} NAME)
    if(NOT EXISTS ${FRAGTRACE_SOURCES}/${file})
        message(FATAL_ERROR "${FRAGTRACE_SOURCES}/${file} is missing: run scripts/setup (for a wheel, scripts/build-wheels), or set FRAGTRACE_SOURCES to its folder")
    endif()
    set(${result} ${FRAGTRACE_SOURCES}/${file} PARENT_SCOPE)
endfunction()
