#include "analyzer/snapshot/snapshot_assumptions.h"

#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {

std::vector<std::string> left_out_lines(const Snapshot& snapshot) {
    std::vector<std::string> lines;
    const auto tell = [&lines](const char* what, const auto& counts) {
        constexpr std::size_t kMostNamed = 5;
        std::string names;
        std::uint64_t sum = 0;
        std::size_t named = 0;
        for (const auto& [name, count] : counts) {
            sum += count;
            if (named++ < kMostNamed) {
                names += fmt::format("{}'{}' {}",
                                     names.empty() ? "" : ", ",
                                     name.substr(0, 40),
                                     format_count(count));
            }
        }
        if (named > kMostNamed) {
            names += fmt::format(", and {} more names", named - kMostNamed);
        }
        if (sum != 0) {
            lines.push_back(fmt::format("{} of no known release are left out: {}", what, names));
        }
    };
    tell("entries", snapshot.unknown_actions);
    tell("keys", snapshot.unknown_keys);
    if (snapshot.internal_entries != 0) {
        lines.push_back(
            fmt::format("{} came from the allocator itself (mallocWithAddress); a replay treats "
                        "them as ordinary requests",
                        format_counted(snapshot.internal_entries, "request", "requests")));
    }
    return lines;
}

std::vector<std::string> snapshot_assumptions(const SnapshotReading& reading) {
    std::vector<std::string> lines;
    if (has_pool(reading.snapshot) && is_oldest_release(reading.snapshot, reading.release)) {
        lines.push_back(
            fmt::format("the snapshot does not name its PyTorch release: the rules of {} are used, "
                        "the oldest release that writes its keys; --torch-version sets another",
                        reading.release));
    }
    if (has_pool(reading.snapshot) && !reading.snapshot.settings_known) {
        lines.push_back(
            fmt::format("the snapshot does not contain the allocator's settings: {} assumed",
                        reading.snapshot.settings.empty() ? "the defaults are"
                                                          : reading.snapshot.settings + " is"));
    }
    if (reading.config.garbage_collection_threshold > 0) {
        lines.push_back(
            "garbage collection depends on a memory fraction, which a snapshot does not contain: "
            "it is not replayed");
    }
    const bool midlife = std::any_of(reading.starts.begin(),
                                     reading.starts.end(),
                                     [](const auto& start) { return !start.segments.empty(); });
    if (midlife && reading.entries != 0 &&
        reading.rules.tie_break == PytorchRules::TieBreak::kRegistration) {
        lines.push_back(
            "the order in which the segments at the start were allocated is unknown: the order of "
            "their addresses is used");
    }
    std::uint64_t pending = 0;
    std::uint64_t releases = 0;
    bool expandable = false;
    for (const SnapshotHistory& history : reading.histories) {
        pending += history.pending_frees();
        releases += history.unexplained_releases();
        expandable = expandable || history.has_expandable();
    }
    if (pending != 0) {
        lines.push_back(
            fmt::format("{} frees waited for other streams, which the snapshot does not name: each "
                        "completes where the history shows its completion",
                        pending));
    }
    if (releases != 0) {
        lines.push_back(
            fmt::format("segments were released {} times without a stack that shows the reason: "
                        "calls of empty_cache are assumed",
                        releases));
    }
    if (expandable) {
        lines.push_back(
            "the snapshot does not have the address ranges of expandable segments: each is assumed "
            "to begin at its lowest mapped address");
    }
    if (std::any_of(reading.starts.begin(), reading.starts.end(), [](const SnapshotStart& start) {
            return start.without_requests != start.without_completions;
        })) {
        lines.push_back(
            "the history has only the requests or only the completions of frees: each free "
            "completes at once");
    }
    if (!reading.snapshot.times_known && reading.entries != 0) {
        lines.push_back(
            "the entries have no times: each is shown one microsecond after the one before");
    }
    return lines;
}

}  // namespace fragtrace::analyzer
