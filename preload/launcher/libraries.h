// What is loaded into the program: our libraries, found beside the launcher, and the order of
// LD_PRELOAD.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::launcher {

struct Installation {
    std::filesystem::path prefix;  // holds bin/ and lib/

    [[nodiscard]] std::filesystem::path analyzer() const { return prefix / "bin" / "fraganalyze"; }

    // The folder of libfragtrace.so: lib, lib64 or lib/TRIPLET.
    [[nodiscard]] std::filesystem::path library_folder() const;
};

// From the path of the running executable.
Installation find_installation();

struct Libraries {
    std::vector<std::string> preload;  // in the order of LD_PRELOAD
    std::string search_folder;         // for LD_LIBRARY_PATH; empty = none
};

// Throws a Refusal where one is missing, or where the linker's lists cannot name it.
Libraries choose_libraries(const Installation& installation, bool record, bool virtual_gpu);

// LD_PRELOAD for the program: ours, then the user's. If the user preloads the runtime of the
// address sanitizer, it stays first.
std::string preload_list(const std::vector<std::string>& ours, std::string_view users);

// ASAN_OPTIONS for the program. By default the sanitizer's runtime ends a program where another
// library stands before it; verify_asan_link_order=0 switches that off. Preloading the runtime
// would help too, but then every shell and tool that the program starts is checked for leaks, and
// fails. The user's options come last and win.
std::string sanitizer_options(std::string_view users);

}  // namespace fragtrace::launcher
