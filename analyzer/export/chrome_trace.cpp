#include "analyzer/export/chrome_trace.h"

#include "analyzer/imports/chrome_events.h"
#include "analyzer/model/event.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/terminal.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Limits. Real profiles stay far below them, except for the number of slices.
constexpr std::size_t kMostSlices = std::size_t{16} << 20;
constexpr std::size_t kMostTracks = 10000;
constexpr std::size_t kMostTextBytes = std::size_t{64} << 20;
constexpr std::size_t kMostNameBytes = 1000;
// Earlier times (before September 2001) are not taken for unix times.
constexpr std::uint64_t kUnixTimesFrom_ns = 1'000'000'000'000'000'000;

// The arguments of metadata events.
constexpr std::array<std::string_view, 2> kArguments = {"name", "labels"};
constexpr std::size_t kArgumentName = 0;
constexpr std::size_t kLabels = 1;

std::string_view kind_in_words(std::string_view phase) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kKinds = {{
        {"stf", "flows"},
        {"iIRnN", "instants"},
        {"C", "counters"},
        {"BEbe", "slices of two events"},
    }};
    for (const auto& [letters, words] : kKinds) {
        if (phase.size() == 1 && letters.find(phase) != std::string_view::npos) {
            return words;
        }
    }
    return "other events";
}

class TraceBuilder {
  public:
    void take(const ChromeEvent& event) {
        if (event.phase == "M") {
            take_metadata(event);
        } else if (event.phase != "X") {
            ++trace_.skipped[std::string(kind_in_words(event.phase))];
        } else if (!take_slice(event)) {
            ++trace_.skipped["slices without a readable time"];
        }
    }

    // An error in words; empty = none.
    std::string finish(std::uint64_t base_ns, ChromeTrace* result) {
        if (trace_.slices == 0) {
            return R"(has no slices (events with "ph": "X"))";
        }
        trace_.first_ns = base_ns + earliest_ns_;
        if (trace_.first_ns < kUnixTimesFrom_ns) {
            return "has times that are not unix times, and no baseTimeNanoseconds, so it cannot be "
                   "placed beside a recording";
        }
        for (ChromeTrack& track : trace_.tracks) {
            for (ChromeSlice& slice : track.slices) {
                slice.begin_ns += base_ns;
                slice.end_ns += base_ns;
                trace_.last_ns = std::max(trace_.last_ns, slice.end_ns);
            }
            std::stable_sort(track.slices.begin(),
                             track.slices.end(),
                             [](const ChromeSlice& a, const ChromeSlice& b) {
                                 return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns
                                                                 : a.end_ns > b.end_ns;
                             });
        }
        *result = std::move(trace_);
        return {};
    }

  private:
    void take_metadata(const ChromeEvent& event) {
        const std::string& what = event.name;
        const std::string pid = shortened(event.pid);
        if (trace_.process_names.size() + trace_.thread_names.size() > kMostTracks) {
            return;
        }
        if (what == "process_name") {
            trace_.process_names[pid] = shortened(event.arguments[kArgumentName]);
        } else if (what == "process_labels") {
            trace_.process_labels[pid] = shortened(event.arguments[kLabels]);
        } else if (what == "thread_name") {
            trace_.thread_names[pid + " " + shortened(event.tid)] =
                shortened(event.arguments[kArgumentName]);
        }
    }

    // Returns false if the slice has no readable time.
    bool take_slice(const ChromeEvent& event) {
        const auto begin_ns = chrome_nanoseconds(event.time);
        const auto duration_ns = chrome_nanoseconds(event.duration);
        if (!begin_ns || !duration_ns || *duration_ns > kMostTime_ns - *begin_ns) {
            return false;
        }
        const auto name = text_number(event.name);
        const auto category = text_number(event.category);
        ChromeTrack* const track = track_of(shortened(event.pid), shortened(event.tid));
        if (!name || !category || track == nullptr || trace_.slices >= kMostSlices) {
            ++trace_.skipped["slices beyond the limits of this command"];
            return true;
        }
        track->slices.push_back({*begin_ns, *begin_ns + *duration_ns, *name, *category});
        earliest_ns_ = std::min(earliest_ns_, *begin_ns);
        ++trace_.slices;
        return true;
    }

    static std::string shortened(const std::string& text) {
        return printable(text.substr(0, kMostNameBytes));
    }

    std::optional<std::uint32_t> text_number(const std::string& text) {
        const auto next = static_cast<std::uint32_t>(trace_.texts.size());
        std::string shown = shortened(text);
        const auto found = numbers_.find(shown);
        if (found != numbers_.end()) {
            return found->second;
        }
        text_bytes_ += shown.size() + sizeof(std::string);
        if (text_bytes_ > kMostTextBytes) {
            return std::nullopt;
        }
        trace_.texts.push_back(shown);
        numbers_.emplace(std::move(shown), next);
        return next;
    }

    ChromeTrack* track_of(const std::string& pid, const std::string& tid) {
        const auto found = track_numbers_.find({pid, tid});
        if (found != track_numbers_.end()) {
            return &trace_.tracks[found->second];
        }
        if (trace_.tracks.size() >= kMostTracks) {
            return nullptr;
        }
        track_numbers_.emplace(std::pair(pid, tid), trace_.tracks.size());
        return &trace_.tracks.emplace_back(ChromeTrack{pid, tid, {}});
    }

    ChromeTrace trace_;
    std::map<std::pair<std::string, std::string>, std::size_t> track_numbers_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::size_t text_bytes_ = 0;
    std::uint64_t earliest_ns_ = kMostTime_ns;
};

}  // namespace

Result<ChromeTrace> read_chrome_trace(const std::string& path) {
    const auto file = InputFile::open(path);
    if (!file) {
        return file.error();
    }
    TraceBuilder builder;
    ChromeHead head;
    ChromeTrace trace;
    std::string problem = read_chrome_events(
        *file, kArguments, [&builder](const ChromeEvent& event) { builder.take(event); }, &head);
    if (problem.empty()) {
        problem = builder.finish(head.base_ns, &trace);
    }
    if (!problem.empty()) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: {}. Give the file that PyTorch's profiler wrote "
                                 "(export_chrome_trace).",
                                 path,
                                 problem)};
    }
    return trace;
}

}  // namespace fragtrace::analyzer
