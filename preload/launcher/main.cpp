// fragtrace: runs a program with the recorder, on a real or the virtual GPU, and explains its trace
// when it ends.
//
// The program's output, input and exit code are unchanged. All messages of fragtrace go to standard
// error.
#include "launcher/arguments.h"
#include "launcher/clean.h"
#include "launcher/demo.h"
#include "launcher/help.h"
#include "launcher/libraries.h"
#include "launcher/program.h"
#include "launcher/refusal.h"
#include "launcher/report.h"
#include "launcher/traces.h"
#include "recorder/options.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <string_view>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

int print(const std::string& text) {
    return fputs(text.c_str(), stdout) < 0 || fflush(stdout) != 0 ? 1 : 0;
}

// `fragtrace top` runs the `top` command of fraganalyze.
int become_analyzer(const Installation& installation, char** argv) {
    const std::string analyzer = installation.analyzer();
    char name[] = "fragtrace";
    argv[0] = name;
    execv(analyzer.c_str(), argv);
    throw Refusal{kNotFound, analyzer + " cannot be run: " + strerror(errno)};
}

// Returns a name for this run that other runs are unlikely to have.
std::string new_job() {
    unsigned chance = 0;
    if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != sizeof chance) {
        chance = static_cast<unsigned>(getpid());
    }
    char text[32];
    snprintf(text, sizeof text, "%08lx%04x", time(nullptr) & 0xffffffff, chance & 0xffff);
    return text;
}

std::string variable(const char* name) {
    const char* value = getenv(name);
    return value == nullptr ? "" : value;
}

Program program_of(const Request& request, const Libraries& libraries) {
    Program program;
    program.file = find_command(request.command[0]);
    program.arguments = request.command;
    program.environment = request.settings;
    const auto set = [&program](const char* name, const std::string& value) {
        program.environment.emplace_back(name, value);
    };
    if (!libraries.preload.empty()) {
        set("LD_PRELOAD", preload_list(libraries.preload, variable("LD_PRELOAD")));
        set("ASAN_OPTIONS", sanitizer_options(variable("ASAN_OPTIONS")));
    }
    if (!libraries.search_folder.empty()) {
        const std::string users = variable("LD_LIBRARY_PATH");
        set("LD_LIBRARY_PATH", libraries.search_folder + (users.empty() ? "" : ':' + users));
        set("FRAGTRACE_VIRTUAL_GPU", request.virtual_gpu);
    }
    return program;
}

// With too little free space, the recorder would lose every event and report that only at the end.
std::string space_warning(const std::string& folder, const Request& request) {
    constexpr const char* kVariable = "FRAGTRACE_KEEP_FREE";
    preload::Options options;
    preload::read_options(&options);
    if (const std::string asked = request.setting_of(kVariable); !asked.empty()) {
        preload::set_option(&options, kVariable, asked.c_str());
    }
    struct statvfs place = {};
    if (statvfs(folder.c_str(), &place) != 0 || place.f_blocks == 0) {
        return "";
    }
    const std::uint64_t least = std::max<std::uint64_t>(
        static_cast<std::uint64_t>(place.f_blocks) / 100 * options.keep_free_percent,
        options.keep_free_bytes / place.f_frsize);
    if (place.f_bavail >= least) {
        return "";
    }
    return "little will be recorded: " + one_line(folder) + " has " +
           std::to_string(place.f_bavail * place.f_frsize >> 20) + " MiB free, and " +
           std::to_string(least * place.f_frsize >> 20) +
           " MiB are kept free there; choose another folder (-o), or --keep-free";
}

int exit_code_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Signals are blocked from the start: one that arrives before the program exists waits for it.
int run(int argc, char** argv) {
    HeldSignals signals;
    const Request request = parse_run(argc, argv);
    if (request.help) {
        return print(help_text());
    }
    const Installation installation = find_installation();
    const Libraries libraries =
        choose_libraries(installation, request.record, !request.virtual_gpu.empty());
    Program program = program_of(request, libraries);
    FinishedRun run;
    if (request.record) {
        const std::string output = request.setting_of("FRAGTRACE_OUTPUT");
        run.folder = prepare_folder(output.empty() ? "." : output);
        if (const std::string warning = space_warning(run.folder, request); !warning.empty()) {
            say(warning);
        }
        run.job = new_job();
        run.begin = folder_time(run.folder);
        run.quiet = request.quiet;
        run.off = preload::option_off();
        run.analyzer = installation.analyzer();
        program.environment.emplace_back("FRAGTRACE_OUTPUT", run.folder);
        program.environment.emplace_back("FRAGTRACE_JOB", run.job);
    }
    const Child child(program, signals);
    run.process = child.id();
    run.status = signals.wait_for(child.id());
    if (const int failure = child.failure(); failure != 0) {
        throw Refusal{exit_code_of(run.status),
                      request.command[0] + ": cannot be run: " + strerror(failure)};
    }
    const int exit_code = exit_code_of(run.status);
    signals.end_with(exit_code);
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
    if (what == "demo") {
        return demo(argc - 1, argv + 1);
    }
    if (what == "run") {
        return run(argc - 1, argv + 1);
    }
    if (what.empty()) {
        refuse_usage("what to do is missing: fragtrace run [OPTIONS] -- COMMAND [ARGUMENT...]");
    }
    refuse_usage("unknown command " + std::string(what));
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
