#include "analyzer/commands/run.h"

#include <fragtrace/suggestion.h>

#include "analyzer/commands/registry.h"
#include "analyzer/support/exit_code.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/terminal.h"

#include <csignal>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace fragtrace::analyzer {
namespace {

int status(ExitCode code) {
    return static_cast<int>(code);
}

int report_error(std::string_view program, const Error& error) {
    // Messages contain file names and texts from traces, which may be unprintable.
    print_to_stderr(fmt::format("{}: {}\n", program, printable(error.message)));
    return status(error.code == ErrorCode::kCheckFailed ? ExitCode::kCheckFailed
                                                        : ExitCode::kBadInput);
}

extern "C" void interrupted(int signal) {
    remove_unfinished_output();
    if (signal == SIGINT) {
        _exit(static_cast<int>(ExitCode::kInterrupted));
    }
    std::signal(signal, SIG_DFL);
    raise(signal);
}

// Installs the handler, unless the signal is ignored, as under nohup.
void end_well_on(int signal) {
    if (std::signal(signal, interrupted) == SIG_IGN) {
        std::signal(signal, SIG_IGN);
    }
}

// Shortens an argument for an error message.
std::string quoted(std::string_view argument) {
    constexpr std::size_t kShown = 200;
    return argument.size() <= kShown
               ? fmt::format("'{}'", argument)
               : fmt::format(
                     "'{}...' ({} characters)", argument.substr(0, kShown), argument.size());
}

bool exists(std::string_view path) {
    std::error_code error;  // set, for example, if the name is longer than file systems allow
    return std::filesystem::exists(path, error);
}

std::vector<std::string> command_names() {
    std::vector<std::string> names;
    for (const Command& command : commands()) {
        names.emplace_back(command.name);
    }
    return names;
}

// The name that the user called: "fragtrace top" is a command of this program.
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
    // "fraganalyze TRACE ..." means "fraganalyze report TRACE ...".
    const bool named = command != nullptr;
    if (!named) {
        const bool traces_follow = argc > 2 && argv[2][0] != '-';
        const std::string meant = did_you_mean(first, command_names());
        if (!first.starts_with('-') && !exists(first) && (traces_follow || !meant.empty())) {
            return report_error(program,
                                {ErrorCode::kUsage,
                                 fmt::format("{} is neither a command nor a trace{} (see "
                                             "'fraganalyze --help')",
                                             quoted(first),
                                             meant)});
        }
        command = find_command("report");
    }
    std::string name = fmt::format("{} {}", program, command->name);
    argc -= named ? 1 : 0;
    argv += named ? 1 : 0;
    argv[0] = name.data();
    Status done = Ok{};
    try {
        done = command->run(argc, argv);
    } catch (const HelpPrinted&) {
    }
    return done ? status(ExitCode::kFine) : report_error(program, done.error());
}

}  // namespace

int run_command_line(int argc, char** argv) {
    for (const int signal :
         {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM}) {
        end_well_on(signal);
    }
    std::signal(SIGPIPE, SIG_DFL);
    const std::string_view program = program_name(argc, argv);
    try {
        const int result = dispatch(program, argc, argv);
        const Status printed = flush_standard_output();
        return printed || result == status(ExitCode::kBadInput)
                   ? result
                   : report_error(program, printed.error());
    } catch (const std::filesystem::filesystem_error& failure) {
        return report_error(
            program,
            {ErrorCode::kInput,
             fmt::format(
                 "{}: cannot be read: {}", failure.path1().string(), failure.code().message())});
    } catch (const std::system_error& failure) {
        // fmt::print() throws if it cannot write.
        return report_error(
            program,
            {ErrorCode::kOutput,
             fmt::format("standard output: cannot be written: {}", failure.code().message())});
    } catch (const std::bad_alloc&) {
        return report_error(program, {ErrorCode::kInput, "not enough memory for this trace"});
    } catch (const std::exception& failure) {
        return report_error(program,
                            {ErrorCode::kInput, fmt::format("internal error: {}", failure.what())});
    }
}

}  // namespace fragtrace::analyzer
