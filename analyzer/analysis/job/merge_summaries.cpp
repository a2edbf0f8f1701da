#include "analyzer/analysis/job/merge_summaries.h"

#include "analyzer/analysis/job/process_summary_json.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// The two independent parts of a summary: what the trace says, and what an analysis added.
ProcessSummary of_trace(ProcessSummary process) {
    process.analysed = process.replayed = false;
    for (ProcessDevice& device : process.devices) {
        device.failures.clear();
        device.settings.clear();
        device.cards.clear();
    }
    return process;
}

ProcessSummary of_analysis(const ProcessSummary& process) {
    ProcessSummary part;
    for (const ProcessDevice& device : process.devices) {
        ProcessDevice& made = part.devices.emplace_back();
        made.device = device.device;
        made.failures = device.failures;
        made.settings = device.settings;
        made.cards = device.cards;
    }
    return part;
}

// Of two summaries of a process, the one whose trace says more comes first. A total order: the
// text decides between any two others.
bool knows_more(const ProcessSummary& a, const ProcessSummary& b) {
    const auto known = [](const ProcessSummary& process) {
        return std::tuple(process.events,
                          process.end.ending != Ending::kRunning && !process.end.unknown(),
                          process.analyzer_version == FRAGTRACE_VERSION,
                          process.end.failed());
    };
    if (known(a) != known(b)) {
        return known(a) > known(b);
    }
    const std::string text_a = to_json_text(of_trace(a));
    const std::string text_b = to_json_text(of_trace(b));
    return text_a != text_b ? text_a > text_b : a.path > b.path;
}

// The same for the analysis of the same events.
bool explains_more(const ProcessSummary& a, const ProcessSummary& b) {
    const std::tuple known_a(a.replayed, a.analysed);
    const std::tuple known_b(b.replayed, b.analysed);
    return known_a != known_b
               ? known_a > known_b
               : a.analysed && to_json_text(of_analysis(a)) > to_json_text(of_analysis(b));
}

void take_analysis(const ProcessSummary& from, ProcessSummary* to) {
    to->analysed = from.analysed;
    to->replayed = from.replayed;
    for (ProcessDevice& device : to->devices) {
        const auto same = std::find_if(
            from.devices.begin(), from.devices.end(), [&device](const ProcessDevice& other) {
                return other.device == device.device;
            });
        if (same != from.devices.end()) {
            device.failures = same->failures;
            device.settings = same->settings;
            device.cards = same->cards;
        }
    }
}

}  // namespace

std::vector<ProcessSummary> merged(std::vector<ProcessSummary> summaries) {
    std::stable_sort(
        summaries.begin(), summaries.end(), [](const ProcessSummary& a, const ProcessSummary& b) {
            return a.identity() < b.identity();
        });
    std::vector<ProcessSummary> kept;
    for (auto begin = summaries.begin(); begin != summaries.end();) {
        const auto end = std::find_if(begin, summaries.end(), [&](const ProcessSummary& other) {
            return other.identity() != begin->identity();
        });
        auto best = begin;
        std::string path;
        for (auto at = begin; at != end; ++at) {
            if (at != begin && knows_more(*at, *best)) {
                best = at;
            }
            path = std::max(path, at->path);
        }
        auto explained = best;
        for (auto at = begin; at != end; ++at) {
            if (at->events == best->events && explains_more(*at, *explained)) {
                explained = at;
            }
        }
        if (explained != best) {
            take_analysis(*explained, &*best);
        }
        if (best->path.empty()) {  // only another summary has its trace at hand
            best->path = path;
        }
        kept.push_back(std::move(*best));
        begin = end;
    }
    std::stable_sort(
        kept.begin(), kept.end(), [](const ProcessSummary& a, const ProcessSummary& b) {
            const auto key = [](const ProcessSummary& process) {
                return std::tuple(std::max(process.place.generation, 0),
                                  process.place.rank < 0,
                                  process.place.rank,
                                  process.identity());
            };
            return key(a) < key(b);
        });
    return kept;
}

std::vector<UnreadableTrace> merged(std::vector<UnreadableTrace> unreadable,
                                    const std::vector<ProcessSummary>& processes) {
    std::set<std::string_view> readable;
    for (const ProcessSummary& process : processes) {
        readable.insert(process.file);
    }
    std::sort(unreadable.begin(), unreadable.end());
    const auto same_file = [](const UnreadableTrace& a, const UnreadableTrace& b) {
        return a.file == b.file;
    };
    unreadable.erase(std::unique(unreadable.begin(), unreadable.end(), same_file),
                     unreadable.end());
    std::erase_if(unreadable, [&readable](const UnreadableTrace& trace) {
        return readable.contains(trace.file);
    });
    return unreadable;
}

}  // namespace fragtrace::analyzer
