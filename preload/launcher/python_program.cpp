#include "launcher/python_program.h"

#include "launcher/program.h"
#include "launcher/refusal.h"

#include <cerrno>
#include <system_error>
#include <unistd.h>

namespace fragtrace::launcher {

std::string own_interpreter(const Installation& installation) {
    std::string beside = installation.prefix / "bin" / "python3";
    return access(beside.c_str(), X_OK) == 0 ? beside : find_command("python3");
}

void become_python(const Installation& installation,
                   const std::string& python,
                   const std::string& program,
                   const std::vector<std::string>& arguments) {
    const std::string path = installation.prefix / "share" / "fragtrace" / program;
    if (access(path.c_str(), R_OK) != 0) {
        throw Refusal{kNotFound, path + " is missing: build or install fragtrace first"};
    }
    // -B: the folder of the program stays as it was installed.
    std::vector<std::string> words = {python, "-B", path};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    execvp(python.c_str(), pointers.data());  // a name without a slash is looked up in PATH
    throw Refusal{kCannotRun, python + " cannot be run: " + std::generic_category().message(errno)};
}

}  // namespace fragtrace::launcher
