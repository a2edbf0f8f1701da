// fraganalyze top: memory of a running process, one line per device and second.
#include "analyzer/analysis/live_view.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/commands/top_server.h"
#include "analyzer/support/units.h"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <system_error>
#include <thread>

namespace fragtrace::analyzer {
namespace {

using Clock = std::chrono::steady_clock;

struct TopOptions {
    std::uint32_t pid = 0;
    double interval_s = 1;
    bool once = false;
    bool json = false;
};

// Returns the only recorded process, or an error that lists all of them.
Result<std::uint32_t> only_process() {
    const std::vector<RecordedProcess> found = recorded_processes();
    if (found.size() == 1) {
        return found.front().pid;
    }
    if (found.empty()) {
        return Error{ErrorCode::kInput, "no process of this user is being recorded"};
    }
    std::string list;
    for (const RecordedProcess& process : found) {
        list += fmt::format(" {} ({})", process.pid, process.trace);
    }
    return Error{ErrorCode::kUsage,
                 fmt::format("{} processes are being recorded, name one:{}", found.size(), list)};
}

class Top {
  public:
    Top(const TopOptions& options, LiveTrace trace) : options_(options), view_(std::move(trace)) {}

    void run() {
        for (bool runs = true; runs;) {
            runs = view_.update();
            print();
            if (options_.once) {
                return;
            }
            if (runs) {
                std::this_thread::sleep_for(std::chrono::duration<double>(options_.interval_s));
            }
        }
        if (!options_.json) {
            fmt::print("process {} has stopped recording; its trace: {}\n",
                       options_.pid,
                       printable(view_.trace().path()));
        }
    }

  private:
    // Events per second since the last line; negative for the first line.
    double rate() {
        const Clock::time_point now = Clock::now();
        const double seconds = std::chrono::duration<double>(now - last_time_).count();
        const double events = static_cast<double>(view_.trace().last_sequence() - last_sequence_);
        const bool known = last_time_ != Clock::time_point{};
        last_time_ = now;
        last_sequence_ = view_.trace().last_sequence();
        return known && seconds > 0 ? events / seconds : -1;
    }

    void print() {
        const double events_per_s = rate();
        for (const LiveView::Device& device : view_.devices()) {
            if (options_.json) {
                fmt::print(
                    "{{\"process\":{},\"device\":{},\"allocated_bytes\":{},"
                    "\"reserved_bytes\":{},\"largest_hole_bytes\":{},\"events\":{},"
                    "\"events_per_second\":{},\"events_lost\":{}}}\n",
                    options_.pid,
                    device.device,
                    device.allocated_bytes,
                    device.reserved_bytes,
                    device.largest_hole_bytes,
                    view_.trace().last_sequence(),
                    events_per_s < 0 ? "null" : fmt::format("{:.1f}", events_per_s),
                    view_.trace().events_lost());
            } else {
                fmt::print(
                    "gpu{}  allocated {:>9}  reserved {:>9}  largest free block {:>9}  "
                    "{} events/s  {} lost\n",
                    device.device,
                    format_bytes(device.allocated_bytes),
                    format_bytes(device.reserved_bytes),
                    format_bytes(device.largest_hole_bytes),
                    events_per_s < 0 ? "-" : format_count(static_cast<std::uint64_t>(events_per_s)),
                    format_count(view_.trace().events_lost()));
            }
        }
        std::fflush(stdout);
    }

    TopOptions options_;
    LiveView view_;
    Clock::time_point last_time_;
    std::uint64_t last_sequence_ = 0;
};

}  // namespace

Status run_top(int argc, char** argv) {
    const std::string name = argv[0];  // "fragtrace top" if it was called that way
    CLI::App app(fmt::format("Shows what a running process holds: a line per device and second.\n"
                             "Reads its trace and its ring; the process itself is not touched.\n\n"
                             "Examples\n"
                             "  {0}                the only recorded process of this user\n"
                             "  {0} 4711\n"
                             "  {0} 4711 --json --interval 10 >> usage.jsonl\n"
                             "  {0} --serve :9464    for Prometheus, at "
                             "http://127.0.0.1:9464/metrics\n",
                             name),
                 name);
    TopOptions options;
    std::string pid;  // read after the options, so that an unknown option is what gets refused
    app.add_option("PID", pid, "the process; without it, the only one of this user");
    app.add_option(
           "--interval", options.interval_s, "seconds between lines, 0.05 to 86400 (default: 1)")
        ->check(CLI::Range(0.05, 86400.0))
        ->check([](const std::string& text) {
            return text.find_first_of("nN") == std::string::npos ? std::string()
                                                                 : "give seconds, such as 0.5";
        });
    app.add_flag("--once", options.once, "print once and end");
    app.add_flag("--json", options.json, "print one JSON object per line");
    std::string serve;
    const CLI::Option* serving =
        app.add_option(
               "--serve",
               serve,
               "answer http://ADDRESS:PORT/metrics in Prometheus' text format, instead of "
               "printing lines; without PID for all recorded processes of this user. Without "
               "ADDRESS only this machine can ask. There is no password")
            ->type_name("[ADDRESS]:PORT");
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    if (!pid.empty()) {
        const auto [end, failed] =
            std::from_chars(pid.data(), pid.data() + pid.size(), options.pid);
        if (failed != std::errc() || end != pid.data() + pid.size() || options.pid == 0) {
            return Error{ErrorCode::kUsage,
                         fmt::format("'{}' is no process id; give a number such as 4711 (see '{} "
                                     "--help')",
                                     printable(pid),
                                     name)};
        }
    }
    if (serving->count() != 0) {
        if (options.once || options.json) {
            return Error{ErrorCode::kUsage, "--serve goes with neither --once nor --json"};
        }
        return serve_figures(serve, options.pid, options.interval_s);
    }
    if (options.pid == 0) {
        const Result<std::uint32_t> only = only_process();
        if (!only) {
            return only.error();
        }
        options.pid = *only;
    }
    Result<LiveTrace> trace = LiveTrace::open(options.pid);
    if (!trace) {
        return trace.error();
    }
    Top(options, std::move(trace).value()).run();
    return Ok{};
}

}  // namespace fragtrace::analyzer
