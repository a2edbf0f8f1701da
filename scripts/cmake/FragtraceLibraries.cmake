# The libraries of the launcher and the analyzer: those of the system, or with
# FRAGTRACE_BUNDLED_LIBRARIES static ones, built from Debian's sources. Both ways define the targets
# CLI11::CLI11, fmt::fmt, fmt::fmt-header-only, nlohmann_json::nlohmann_json, ZLIB::ZLIB,
# PkgConfig::ZSTD, PkgConfig::DW, PkgConfig::SQLITE and PkgConfig::RE2.
if(FRAGTRACE_BUNDLED_LIBRARIES)
    add_subdirectory(${PROJECT_SOURCE_DIR}/analyzer/libraries)
    return()
endif()
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
if(FRAGTRACE_ANALYZER)
    find_package(PkgConfig REQUIRED)
    pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
    pkg_check_modules(DW REQUIRED IMPORTED_TARGET libdw)
    pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3>=3.34)
    pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
endif()
