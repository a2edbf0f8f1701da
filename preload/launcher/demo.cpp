#include "launcher/demo.h"

#include "launcher/libraries.h"
#include "launcher/program.h"
#include "launcher/refusal.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

namespace fragtrace::launcher {
namespace {

// Returns the interpreter of the environment that fragtrace is installed in, which has the packages
// of `fragtrace[demo]`. Elsewhere the first one on the path.
std::string interpreter(const Installation& installation) {
    std::string beside = installation.prefix / "bin" / "python3";
    return access(beside.c_str(), X_OK) == 0 ? beside : find_command("python3");
}

}  // namespace

int demo(int argc, char** argv) {
    const Installation installation = find_installation();
    std::string program = installation.prefix / "share" / "fragtrace" / "demo" / "demo.py";
    if (access(program.c_str(), R_OK) != 0) {
        throw Refusal{kNotFound, program + " is missing: build or install fragtrace first"};
    }
    std::string python = interpreter(installation);
    char no_bytecode[] = "-B";  // the folder of the program stays as it was installed
    std::string launcher = installation.prefix / "bin" / "fragtrace";
    std::vector<char*> arguments = {python.data(), no_bytecode, program.data(), launcher.data()};
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    arguments.push_back(nullptr);
    execv(python.c_str(), arguments.data());
    throw Refusal{kCannotRun, python + " cannot be run: " + strerror(errno)};
}

}  // namespace fragtrace::launcher
