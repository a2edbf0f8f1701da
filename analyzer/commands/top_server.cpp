#include "analyzer/commands/top_server.h"

#include "analyzer/analysis/live_view.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/text_server.h"

#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using Views = std::map<std::uint32_t, LiveView>;  // by process id

struct Metric {
    std::string_view name;
    std::string_view type;
    std::string_view help;
    std::function<std::optional<std::uint64_t>(const LiveView::Device&)> value;
};

const std::vector<Metric>& device_metrics() {
    using Device = LiveView::Device;
    static const std::vector<Metric> kMetrics = {
        {"fragtrace_allocated_bytes",
         "gauge",
         "Memory of live blocks.",
         [](const Device& device) { return device.allocated_bytes; }},
        {"fragtrace_reserved_bytes",
         "gauge",
         "Memory of the pool from the driver. Without a pool: all memory of the process.",
         [](const Device& device) { return device.reserved_bytes; }},
        {"fragtrace_largest_free_block_bytes",
         "gauge",
         "Largest free block of the pool.",
         [](const Device& device) { return device.largest_hole_bytes; }},
        {"fragtrace_headroom_bytes",
         "gauge",
         "Memory that the driver can still give the process, if other processes use as much as at "
         "its last report.",
         [](const Device& device) { return device.headroom_bytes; }},
        {"fragtrace_retries_total",
         "counter",
         "Requests that were served only after the pool had released memory.",
         [](const Device& device) { return device.retries; }},
        {"fragtrace_ooms_total",
         "counter",
         "Requests that failed for lack of memory.",
         [](const Device& device) { return device.ooms; }},
    };
    return kMetrics;
}

std::string labels(std::uint32_t pid, const LiveView& view) {
    const std::int32_t rank = view.trace().rank();
    return fmt::format(
        "process=\"{}\",rank=\"{}\"", pid, rank < 0 ? std::string() : std::to_string(rank));
}

// The text of a label: one line, with the escapes of Prometheus' format.
std::string label_text(std::string_view text) {
    std::string escaped;
    for (const char c : printable(text)) {
        escaped += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    }
    return escaped;
}

// The ordinal of a device differs between processes (CUDA_VISIBLE_DEVICES); its UUID does not.
std::string device_labels(const LiveView& view, DeviceId device) {
    return fmt::format("device=\"{}\",uuid=\"{}\",name=\"{}\"",
                       device,
                       label_text(view.trace().device_fact(device, "uuid")),
                       label_text(view.trace().device_fact(device, "name")));
}

void add_head(const Metric& metric, std::string* text) {
    fmt::format_to(std::back_inserter(*text),
                   "# HELP {0} {1}\n# TYPE {0} {2}\n",
                   metric.name,
                   metric.help,
                   metric.type);
}

std::string exposition(const Views& views) {
    std::string text;
    for (const Metric& metric : device_metrics()) {
        add_head(metric, &text);
        for (const auto& [pid, view] : views) {
            for (const LiveView::Device& device : view.devices()) {
                if (const auto value = metric.value(device)) {
                    fmt::format_to(std::back_inserter(text),
                                   "{}{{{},{}}} {}\n",
                                   metric.name,
                                   labels(pid, view),
                                   device_labels(view, device.device),
                                   *value);
                }
            }
        }
    }
    const auto add_process_metric = [&](const Metric& metric, auto value) {
        add_head(metric, &text);
        for (const auto& [pid, view] : views) {
            fmt::format_to(std::back_inserter(text),
                           "{}{{{}}} {}\n",
                           metric.name,
                           labels(pid, view),
                           value(view.trace()));
        }
    };
    add_process_metric({"fragtrace_events_total", "counter", "Events of the process.", {}},
                       [](const LiveTrace& trace) { return trace.last_sequence(); });
    add_process_metric(
        {"fragtrace_events_lost_total", "counter", "Events that the recorder could not keep.", {}},
        [](const LiveTrace& trace) { return trace.events_lost(); });
    return text;
}

// Finds new processes and reads new events. Processes that have ended disappear.
void refresh(std::uint32_t only, Views* views) {
    for (const RecordedProcess& process : recorded_processes()) {
        if ((only != 0 && process.pid != only) || views->contains(process.pid)) {
            continue;
        }
        Result<LiveTrace> trace = LiveTrace::open(process.pid);
        if (trace) {
            views->emplace(process.pid, LiveView(std::move(trace).value()));
        }
    }
    for (auto at = views->begin(); at != views->end();) {
        at = at->second.update() ? std::next(at) : views->erase(at);
    }
}

}  // namespace

Status serve_figures(const std::string& where, std::uint32_t pid, double interval_s) {
    Result<TextServer> server = TextServer::listen(where, "/metrics");
    if (!server) {
        return server.error();
    }
    Views views;
    if (pid != 0) {
        Result<LiveTrace> trace = LiveTrace::open(pid);
        if (!trace) {
            return trace.error();
        }
        views.emplace(pid, LiveView(std::move(trace).value()));
    }
    print_to_stderr(fmt::format(
        "Serving {} to {}: process ids, ranks, cards and memory figures of {}. No command "
        "lines, no host names, no sources. Ctrl-C ends it.\n",
        server->url(),
        server->only_this_machine() ? "every user of this machine"
                                    : "everybody who can reach this address",
        pid != 0 ? fmt::format("process {}", pid) : "all recorded processes of this user"));
    refresh(pid, &views);
    while (pid == 0 || !views.empty()) {
        server->serve_for(interval_s, [&views] { return exposition(views); });
        refresh(pid, &views);
    }
    print_to_stderr(fmt::format("Process {} records no more.\n", pid));
    return Ok{};
}

}  // namespace fragtrace::analyzer
