#include "launcher/demo.h"

#include "launcher/command_line.h"
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

constexpr const char* kText =
    R"(Trains a GPT for 40 steps in PyTorch on a virtual card of 16 GiB. Prints the report, and writes the
page and, beside it, the trace. Needs no GPU, and takes about a minute.
)";

// Returns the interpreter of the environment that fragtrace is installed in, which has the packages
// of `fragtrace[demo]`. Elsewhere the first one on the path.
std::string interpreter(const Installation& installation) {
    std::string beside = installation.prefix / "bin" / "python3";
    return access(beside.c_str(), X_OK) == 0 ? beside : find_command("python3");
}

}  // namespace

int demo(int argc, char** argv) {
    CLI::App app(kText, "fragtrace demo");
    std::string training_python;
    std::string page = "timeline.html";
    app.add_option("--python",
                   training_python,
                   "an interpreter with a CUDA build of PyTorch (default: the one of the "
                   "environment that fragtrace is installed in, otherwise python3)")
        ->type_name("PATH");
    app.add_option("-o,--output", page, "the page")->type_name("FILE")->capture_default_str();
    if (!read_options(&app, argc, argv)) {
        print_help(app);
        return 0;
    }
    const Installation installation = find_installation();
    std::string program = installation.prefix / "share" / "fragtrace" / "demo" / "demo.py";
    if (access(program.c_str(), R_OK) != 0) {
        throw Refusal{kNotFound, program + " is missing: build or install fragtrace first"};
    }
    std::string python = interpreter(installation);
    if (training_python.empty()) {
        training_python = python;
    }
    char no_bytecode[] = "-B";  // the folder of the program stays as it was installed
    std::string launcher = installation.prefix / "bin" / "fragtrace";
    const std::vector<char*> arguments = {python.data(),
                                          no_bytecode,
                                          program.data(),
                                          launcher.data(),
                                          training_python.data(),
                                          page.data(),
                                          nullptr};
    execv(python.c_str(), arguments.data());
    throw Refusal{kCannotRun, python + " cannot be run: " + strerror(errno)};
}

}  // namespace fragtrace::launcher
