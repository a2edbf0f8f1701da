// A folder for the files that a command needs while it runs.
#pragma once

#include "launcher/refusal.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace fragtrace::launcher {

// A new folder below $TMPDIR that only this user can read. It is removed with everything in it.
// Throws a Refusal if it cannot be made.
class Scratch {
  public:
    // `command` becomes a part of the folder's name.
    explicit Scratch(const std::string& command) {
        std::error_code failed;
        path_ =
            (std::filesystem::temp_directory_path(failed) / ("fragtrace-" + command + "-XXXXXX"))
                .native();
        if (mkdtemp(path_.data()) == nullptr) {
            throw Refusal{kBadUsage, "cannot make a temporary folder in $TMPDIR"};
        }
    }

    ~Scratch() {
        std::error_code failed;
        std::filesystem::remove_all(path_, failed);
    }

    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    [[nodiscard]] std::string file(const char* name) const { return path_ + '/' + name; }

  private:
    std::string path_;
};

}  // namespace fragtrace::launcher
