// fragtrace: runs a program with the recorder, on a real or the virtual GPU, and explains its trace
// when it ends.
//
// The program's output, input and exit code are unchanged. All messages of fragtrace go to standard
// error.
#include <fragtrace/printable.h>
#include <fragtrace/suggestion.h>

#include "launcher/arguments.h"
#include "launcher/clean.h"
#include "launcher/demo.h"
#include "launcher/doctor.h"
#include "launcher/help.h"
#include "launcher/job.h"
#include "launcher/libraries.h"
#include "launcher/refusal.h"
#include "launcher/report.h"
#include "launcher/run.h"
#include "launcher/try.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

int print(const std::string& text) {
    print_output(text);
    return 0;
}

// `fragtrace top` runs the `top` command of fraganalyze.
int become_analyzer(const Installation& installation, char** argv) {
    const std::string analyzer = find_analyzer(installation);
    char name[] = "fragtrace";
    argv[0] = name;
    execv(analyzer.c_str(), argv);
    throw Refusal{kNotFound, analyzer + " cannot be run: " + strerror(errno)};
}

// Signals are blocked from the start: one that arrives before the program exists waits for it.
int run(int argc, char** argv) {
    HeldSignals signals;
    const Request request = parse_run(argc, argv);
    if (request.help) {
        return print(help_text());
    }
    const FinishedRun run = run_command(request, &signals);
    const int exit_code = exit_code_of(run.status);
    if (request.record) {
        report(run, signals);
    }
    return exit_code;
}

int dispatch(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "-h" || what == "--help") {
        return print(help_text());
    }
    if (what == "--version") {
        return print("fragtrace " FRAGTRACE_VERSION "\n");
    }
    if (what == "top") {
        return become_analyzer(find_installation(), argv);
    }
    if (what == "clean") {
        return clean(argc - 1, argv + 1);
    }
    if (what == "doctor") {
        return doctor(argc - 1, argv + 1);
    }
    if (what == "try") {
        return try_remedy(argc - 1, argv + 1);
    }
    if (what == "demo") {
        return demo(argc - 1, argv + 1);
    }
    if (what == "job") {
        return job(argc - 1, argv + 1);
    }
    if (what == "run") {
        return run(argc - 1, argv + 1);
    }
    if (what.empty()) {
        refuse_usage("what to do is missing: fragtrace run [OPTIONS] -- COMMAND [ARGUMENT...]");
    }
    refuse_usage(
        "unknown command " + printable(what) +
        did_you_mean(
            what, {"run", "try", "top", "job", "clean", "demo", "doctor", "--help", "--version"}));
}

}  // namespace
}  // namespace fragtrace::launcher

int main(int argc, char** argv) {
    using namespace fragtrace::launcher;
    try {
        _exit(dispatch(argc, argv));
    } catch (const Refusal& refusal) {
        say(refusal.text);
        _exit(refusal.exit_code);
    } catch (const std::exception& failure) {
        say(failure.what());
        _exit(kBadUsage);
    }
}
