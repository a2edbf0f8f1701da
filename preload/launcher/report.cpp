#include "launcher/report.h"

#include "launcher/machine.h"
#include "launcher/program.h"
#include "launcher/refusal.h"
#include "launcher/traces.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

// Short enough to paste into a message: a verdict, then one line per trace.
constexpr int kSummaryLines = 25;
constexpr int kListedTraces = 20;

// Returns the first `most` lines of the text, and subtracts their number from `most`.
std::string_view begin_of(std::string_view text, int* most) {
    std::size_t at = 0;
    while (*most > 0 && at < text.size()) {
        const std::size_t end = text.find('\n', at);
        if (end == std::string_view::npos) {
            return text;
        }
        at = end + 1;
        --*most;
    }
    return text.substr(0, at);
}

// Returns all that fraganalyze writes to standard output; empty if it cannot be run.
std::string output_of(const std::string& analyzer,
                      std::vector<std::string> arguments,
                      const HeldSignals& signals) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return "";
    }
    arguments.insert(arguments.begin(), analyzer);
    const Child child({analyzer, std::move(arguments), {}, ends[1], false}, signals);
    close(ends[1]);
    std::string text;
    char buffer[65536];
    for (ssize_t size = 1; size > 0 || (size < 0 && errno == EINTR);) {
        size = read(ends[0], buffer, sizeof buffer);
        text.append(buffer, size < 0 ? 0 : static_cast<std::size_t>(size));
    }
    close(ends[0]);
    while (waitpid(child.id(), nullptr, 0) < 0 && errno == EINTR) {
    }
    return text;
}

// Prints the first lines of fraganalyze's output.
void print_analysis(const std::string& analyzer,
                    std::vector<std::string> arguments,
                    std::string_view heading,
                    int lines,
                    const HeldSignals& signals) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    arguments.insert(arguments.begin(), analyzer);
    const Child child({analyzer, std::move(arguments), {}, ends[1]}, signals);
    close(ends[1]);
    char buffer[4096];
    for (ssize_t size = 0; lines > 0;) {
        size = read(ends[0], buffer, sizeof buffer);
        if (size <= 0 && !(size < 0 && errno == EINTR)) {
            break;
        }
        const std::string_view text(buffer, size < 0 ? 0 : static_cast<std::size_t>(size));
        if (!text.empty()) {
            write_error(heading);
            heading = {};
            write_error(begin_of(text, &lines));
        }
    }
    close(ends[0]);
    while (waitpid(child.id(), nullptr, 0) < 0 && errno == EINTR) {
    }
    if (const int failure = child.failure(); failure != 0) {
        say(analyzer + " cannot be run: " + strerror(failure));
    }
}

// A trace does not contain the signal that ended its process, nor when; only the parent knows them.
void add_signal(const FinishedRun& run, std::vector<std::string>* arguments) {
    if (WIFSIGNALED(run.status)) {
        arguments->emplace_back("--killed");
        arguments->push_back(std::to_string(run.process) + '=' +
                             std::to_string(WTERMSIG(run.status)) + '@' +
                             std::to_string(run.ended_ns));
    }
}

// fraganalyze gets all traces and selects the process that failed first, whatever the command's
// exit status: scripts and restarts hide failures.
std::vector<std::string> summary_arguments(const FinishedRun& run,
                                           const std::vector<std::string>& traces) {
    std::vector<std::string> arguments = traces;
    arguments.emplace_back("--summary");
    add_signal(run, &arguments);
    return arguments;
}

std::vector<std::string> list_arguments(const FinishedRun& run,
                                        const std::vector<std::string>& traces,
                                        const std::string& here) {
    std::vector<std::string> arguments = {
        "list", "--job", run.job, "--limit", std::to_string(kListedTraces), "--"};
    for (const std::string& trace : traces) {
        arguments.push_back(trace.starts_with(here + '/') ? trace.substr(here.size() + 1) : trace);
    }
    return arguments;
}

}  // namespace

std::vector<std::string> traces_of_run(const FinishedRun& run,
                                       const HeldSignals& signals,
                                       std::size_t* others) {
    std::vector<std::string> traces = find_traces(run.output, run.begin, run.process);
    *others = 0;
    if (traces.empty() || access(run.analyzer.c_str(), X_OK) != 0) {
        return traces;
    }
    std::vector<std::string> arguments = {"list", "--json", "-", "--"};
    arguments.insert(arguments.end(), traces.begin(), traces.end());
    const auto list =
        nlohmann::json::parse(output_of(run.analyzer, arguments, signals), nullptr, false);
    std::set<std::string> of_others;
    if (list.is_object() && list.contains("traces")) {
        for (const auto& trace : list["traces"]) {
            const std::string job = trace.value("job", "");
            if (!job.empty() && job != run.job) {
                of_others.insert(trace.value("path", ""));
            }
        }
    }
    *others = std::erase_if(
        traces, [&of_others](const std::string& trace) { return of_others.contains(trace); });
    return traces;
}

void report(const FinishedRun& run, const HeldSignals& signals) {
    std::size_t others = 0;
    const std::vector<std::string> traces = traces_of_run(run, signals, &others);
    if (traces.empty()) {
        say(run.off ? "no trace: FRAGTRACE_OFF switched recording off"
            : others == 0
                ? "no trace in " + run.output.name() +
                      ": no process of this command made a CUDA call that is recorded" +
                      (!run.virtual_gpu && lacks_driver()
                           ? ". This machine has no NVIDIA driver. Record without one: fragtrace "
                             "run --virtual-gpu 24GiB -- COMMAND"
                           : "")
                : "no trace of this run in " + run.output.name() +
                      ", only traces that other runs of fragtrace wrote there meanwhile: " +
                      std::to_string(others));
        return;
    }
    std::error_code failed;
    const std::string here = std::filesystem::current_path(failed);
    const std::string trace = shell_path(traces[0], here);
    if (run.quiet) {
        // With several traces, only an analysis shows which one matters: it selects the first
        // failure.
        const std::string what =
            traces.size() == 1 ? trace
                               : shell_path(run.output.folder, here) +
                                     (run.output.pattern.empty() ? "" : run.output.shell_glob());
        say(shell_path(run.analyzer, here) + ' ' + what);
        if (access(run.analyzer.c_str(), X_OK) == 0) {
            std::vector<std::string> arguments = {"list", "--absorb"};
            add_signal(run, &arguments);
            const std::vector<std::string> list = list_arguments(run, traces, here);
            arguments.insert(arguments.end(), list.begin() + 1, list.end());
            print_analysis(run.analyzer, arguments, "", 0, signals);
        }
    } else if (access(run.analyzer.c_str(), X_OK) == 0) {
        print_analysis(run.analyzer, summary_arguments(run, traces), "", kSummaryLines, signals);
        print_analysis(run.analyzer,
                       list_arguments(run, traces, here),
                       "fragtrace: ",
                       kListedTraces + 2,
                       signals);
    } else {
        say("the trace is " + trace + "; " + run.analyzer + ", which explains it, is missing");
    }
}

}  // namespace fragtrace::launcher
