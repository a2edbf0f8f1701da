#include "analyzer/cli/run.h"

#include "analyzer/cli/exit_code.h"
#include "analyzer/commands/registry.h"

#include <csignal>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <new>
#include <string>
#include <string_view>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

int status(ExitCode code) {
    return static_cast<int>(code);
}

int report_error(std::string_view program, const Error& error) {
    fmt::print(stderr, "{}: {}\n", program, error.message);
    return status(error.code == ErrorCode::kCheckFailed ? ExitCode::kCheckFailed
                                                        : ExitCode::kBadInput);
}

extern "C" void interrupted(int) {
    _exit(static_cast<int>(ExitCode::kInterrupted));
}

// What the user called: "fragtrace top" is a command of this program by another name.
std::string_view program_name(int argc, char** argv) {
    const std::string_view path = argc > 0 ? argv[0] : "";
    return path.substr(path.rfind('/') + 1) == "fragtrace" ? "fragtrace" : "fraganalyze";
}

int dispatch(std::string_view program, int argc, char** argv) {
    const std::string_view first = argc > 1 ? argv[1] : "";
    if (argc < 2 || first == "--help" || first == "-h" || first == "help") {
        fmt::print(argc < 2 ? stderr : stdout, "{}", overview());
        return status(argc < 2 ? ExitCode::kBadInput : ExitCode::kFine);
    }
    if (first == "--version") {
        fmt::print("fraganalyze {}\n", FRAGTRACE_VERSION);
        return status(ExitCode::kFine);
    }
    const Command* command = find_command(first);
    // "fraganalyze TRACE ..." is "fraganalyze report TRACE ...".
    const bool named = command != nullptr;
    if (!named) {
        if (argc > 2 && !first.starts_with('-') && argv[2][0] != '-' &&
            !std::filesystem::exists(first)) {
            return report_error(program,
                                {ErrorCode::kUsage,
                                 fmt::format("'{}' is neither a command nor a trace (see "
                                             "'fraganalyze --help')",
                                             first)});
        }
        command = find_command("report");
    }
    std::string name = fmt::format("{} {}", program, command->name);
    argc -= named ? 1 : 0;
    argv += named ? 1 : 0;
    argv[0] = name.data();
    const Status done = command->run(argc, argv);
    return done ? status(ExitCode::kFine) : report_error(program, done.error());
}

}  // namespace

int run_command_line(int argc, char** argv) {
    std::signal(SIGINT, interrupted);
    std::signal(SIGPIPE, SIG_DFL);
    const std::string_view program = program_name(argc, argv);
    try {
        return dispatch(program, argc, argv);
    } catch (const std::bad_alloc&) {
        return report_error(program, {ErrorCode::kInput, "not enough memory for this trace"});
    } catch (const std::exception& failure) {
        return report_error(program,
                            {ErrorCode::kInput, fmt::format("internal error: {}", failure.what())});
    }
}

}  // namespace fragtrace::analyzer
