// The libraries that are loaded into the program: ours, found relative to the launcher, and the
// order of LD_PRELOAD.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::launcher {

struct Installation {
    std::filesystem::path prefix;  // contains bin/ and lib/

    [[nodiscard]] std::filesystem::path analyzer() const { return prefix / "bin" / "fraganalyze"; }

    // Returns the folder of libfragtrace.so: lib, lib64 or lib/TRIPLET.
    [[nodiscard]] std::filesystem::path library_folder() const;
};

// Determined from the path of the running executable.
Installation find_installation();

// Returns the path of fraganalyze. Throws a Refusal (kNotFound) if it is not installed.
std::string find_analyzer(const Installation& installation);

struct Libraries {
    std::vector<std::string> preload;  // in the order of LD_PRELOAD
    std::string search_folder;         // for LD_LIBRARY_PATH; empty = none
};

// Throws a Refusal if one is missing, or if its path is not allowed in LD_PRELOAD.
Libraries choose_libraries(const Installation& installation, bool record, bool virtual_gpu);

// Returns LD_PRELOAD for the program: our libraries, then the user's. The runtime of the address
// sanitizer and torch_memory_saver's library stay first.
std::string preload_list(const std::vector<std::string>& ours, std::string_view users);

// Returns ASAN_OPTIONS for the program. By default, the sanitizer's runtime ends a program if
// another library is loaded before it; verify_asan_link_order=0 disables that. Preloading the
// runtime would help too, but then every shell and tool that the program starts would be checked
// for leaks and fail. The user's options come last and have priority.
std::string sanitizer_options(std::string_view users);

}  // namespace fragtrace::launcher
