// A folder for the files that a command needs while it runs.
#pragma once

#include <fragtrace/printable.h>

#include "launcher/own_text.h"
#include "launcher/refusal.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
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
        const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
        path_ = (folder / ("fragtrace-" + command + "-XXXXXX")).native();
        if (failed || mkdtemp(path_.data()) == nullptr) {
            const std::string cause =
                failed ? failed.message() : std::generic_category().message(errno);
            throw Refusal{kBadUsage,
                          fmt::format("cannot create a temporary folder{}: {}; set TMPDIR to a "
                                      "folder in which you may write",
                                      failed ? std::string() : " in " + printable(folder.native()),
                                      cause)};
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
