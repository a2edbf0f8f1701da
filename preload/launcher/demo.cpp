#include "launcher/demo.h"

#include "launcher/command_line.h"
#include "launcher/libraries.h"
#include "launcher/python_program.h"

#include <string>

namespace fragtrace::launcher {
namespace {

constexpr const char* kDemoText =
    R"(Trains a GPT for 40 steps in PyTorch on a virtual card of 16 GiB. Prints the report, and writes the
page and, beside it, the trace. Needs no GPU, and takes about a minute.
)";

}  // namespace

int demo(int argc, char** argv) {
    CLI::App app(kDemoText, "fragtrace demo");
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
    const std::string python = own_interpreter(installation);
    const std::string launcher = installation.prefix / "bin" / "fragtrace";
    become_python(installation,
                  python,
                  "demo/demo.py",
                  {launcher, training_python.empty() ? python : training_python, page});
}

}  // namespace fragtrace::launcher
