#include "analyzer/analysis/job/job_groups.h"

#include "analyzer/analysis/metrics/known_figures.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kPeakTolerance = 20;  // 1/20 = 5 %
constexpr std::uint64_t kLineTolerance = 10;  // 1/10 of the peak
constexpr std::size_t kLinesOfGroup = 4;
constexpr std::size_t kMostGroups = 64;

bool about_equal(std::uint64_t a, std::uint64_t b) {
    return std::max(a, b) - std::min(a, b) <= std::max(a, b) / kPeakTolerance;
}

std::uint64_t bytes_of(const ProcessDevice& device, const std::string& line) {
    for (const LineHolds& holds : device.holders) {
        if (holds.line == line) {
            return holds.bytes;
        }
    }
    return 0;
}

// Whether `b` has the large lines of `a`.
bool has_lines_of(const ProcessDevice& a, const ProcessDevice& b) {
    const std::uint64_t large = peak_of(a) / kLineTolerance;
    return std::all_of(a.holders.begin(), a.holders.end(), [&](const LineHolds& holds) {
        const std::uint64_t other = bytes_of(b, holds.line);
        return holds.bytes < large ||
               std::max(holds.bytes, other) - std::min(holds.bytes, other) <= large;
    });
}

bool equal_peaks(const ProcessDevice& a, const ProcessDevice& b) {
    return about_equal(peak_of(a), peak_of(b));
}

bool equal_allocated(const ProcessDevice& a, const ProcessDevice& b) {
    return about_equal(a.run.peak_allocated, b.run.peak_allocated);
}

bool equal_lines(const ProcessDevice& a, const ProcessDevice& b) {
    return has_lines_of(a, b) && has_lines_of(b, a);
}

// Why two processes of one generation do not belong together; empty if they do.
std::vector<GroupReason> reasons_between(const ProcessSummary& a, const ProcessSummary& b) {
    std::vector<GroupReason> reasons;
    const auto add = [&reasons](GroupReason reason, bool equal) {
        if (!equal) {
            reasons.push_back(reason);
        }
    };
    const bool same_devices = a.devices.size() == b.devices.size();
    const auto all_devices = [&](auto equal) {
        return !same_devices ||
               std::equal(a.devices.begin(), a.devices.end(), b.devices.begin(), equal);
    };
    add(GroupReason::kDevices, same_devices);
    add(GroupReason::kRank, (a.place.rank < 0) == (b.place.rank < 0));
    add(GroupReason::kOutOfMemory, a.first_oom().has_value() == b.first_oom().has_value());
    add(GroupReason::kPeak, all_devices(equal_peaks));
    add(GroupReason::kAllocated, all_devices(equal_allocated));
    add(GroupReason::kLines, all_devices(equal_lines));
    return reasons;
}

bool belong_together(const ProcessSummary& a, const ProcessSummary& b) {
    return generation_of(a) == generation_of(b) && reasons_between(a, b).empty();
}

// The lines of all devices of a process together.
struct AllLines {
    std::map<std::string, std::uint64_t> bytes;
    std::uint64_t unlisted = 0;  // a line that is not listed has at most this

    explicit AllLines(const ProcessSummary& process) {
        for (const ProcessDevice& device : process.devices) {
            for (const LineHolds& holds : device.holders) {
                bytes[holds.line] += holds.bytes;
            }
            unlisted +=
                device.all_holders || device.holders.empty() ? 0 : device.holders.back().bytes;
        }
    }
};

std::int64_t difference(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::int64_t>(a - b);
}

// Adds a line that only one side lists. The other side has at most `unlisted` bytes of it.
void add_one_sided(const std::string& line,
                   std::uint64_t held,
                   std::uint64_t unlisted,
                   bool more,
                   std::vector<LineDifference>* lines) {
    if (held > unlisted) {
        const std::int64_t bytes = difference(held, unlisted);
        lines->push_back({line, more ? bytes : -bytes, unlisted != 0});
    }
}

std::uint64_t unused_at_peak(const ProcessSummary& process) {
    std::uint64_t all = 0;
    for (const ProcessDevice& device : process.devices) {
        const WasteSplit& waste = device.run.waste_at_peak;
        all += waste.wasted() - waste.pending;  // other streams still use pending blocks
    }
    return all;
}

std::uint64_t size_of(std::int64_t difference) {
    return static_cast<std::uint64_t>(difference < 0 ? -difference : difference);
}

std::uint64_t allocated_by(const ProcessSummary& process) {
    return process.sum(&RunFigures::peak_allocated);
}

// Bytes by which the lines of two processes differ.
std::uint64_t unlikeness(const ProcessSummary& a, const ProcessSummary& b) {
    const AllLines of_a(a);
    const AllLines of_b(b);
    std::uint64_t bytes = 0;
    for (const auto& [line, held] : of_a.bytes) {
        const auto other = of_b.bytes.find(line);
        bytes += other == of_b.bytes.end() ? held : size_of(difference(held, other->second));
    }
    for (const auto& [line, held] : of_b.bytes) {
        bytes += of_a.bytes.contains(line) ? 0 : held;
    }
    return bytes;
}

}  // namespace

std::vector<ProcessGroup> groups_of(const Job& job, std::vector<std::size_t>* rest) {
    std::vector<ProcessGroup> groups;
    std::unordered_map<std::string, std::size_t> known;
    const bool any = std::any_of(job.processes.begin(), job.processes.end(), [](const auto& one) {
        return !one.devices.empty();
    });
    const auto add = [&](std::size_t i) {
        const ProcessSummary& process = job.processes[i];
        // A rank that used no device differs from those that did.
        if (process.devices.empty() && (process.place.rank < 0 || !any)) {
            return;
        }
        const std::string key = fingerprint(process) + (process.place.rank < 0 ? "-" : "+") +
                                std::to_string(generation_of(process));
        auto [at, is_new] = known.try_emplace(key, groups.size());
        if (is_new) {
            const auto like = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
                return belong_together(job.processes[group.front()], process);
            });
            at->second = static_cast<std::size_t>(like - groups.begin());
            if (like == groups.end() && groups.size() < kMostGroups) {
                groups.emplace_back();
            }
        }
        (at->second < groups.size() ? groups[at->second].members : *rest).push_back(i);
    };
    // Whole recordings come first: the others have only lower bounds, and stand for nobody.
    for (const bool partial : {false, true}) {
        for (std::size_t i = 0; i < job.processes.size(); ++i) {
            if (job.processes[i].misses_parts() == partial) {
                add(i);
            }
        }
    }
    for (ProcessGroup& group : groups) {
        group.least_reserved = ~std::uint64_t{0};
        for (const std::size_t member : group.members) {
            const std::uint64_t peak = peak_of(job.processes[member]);
            group.least_reserved = std::min(group.least_reserved, peak);
            group.most_reserved = std::max(group.most_reserved, peak);
        }
        const auto replayed =
            std::find_if(group.members.begin(), group.members.end(), [&](std::size_t i) {
                return job.processes[i].replayed;
            });
        group.shown = replayed == group.members.end() ? group.front() : *replayed;
    }
    // Ranks come first: the others are compared with them, not with their many helpers or earlier
    // programs. So do whole recordings.
    std::stable_sort(groups.begin(), groups.end(), [&job](const auto& a, const auto& b) {
        const auto key = [&job](const ProcessGroup& group) {
            const ProcessSummary& process = job.processes[group.front()];
            return std::tuple(process.place.rank >= 0,
                              !process.has_later_program,
                              !process.misses_parts(),
                              group.members.size(),
                              !process.devices.empty());
        };
        return key(a) > key(b);
    });
    return groups;
}

std::optional<std::size_t> compared_with(const Job& job,
                                         const std::vector<ProcessGroup>& groups,
                                         std::size_t group) {
    const ProcessSummary& process = job.processes[groups[group].front()];
    std::optional<std::size_t> best;
    std::uint64_t least = ~std::uint64_t{0};
    for (std::size_t i = 0; i < group; ++i) {
        const ProcessSummary& other = job.processes[groups[i].front()];
        if (generation_of(other) != generation_of(process)) {
            continue;
        }
        const bool large = is_small(groups[group].members.size(), groups[i].members.size());
        if (!best) {
            best = i;
        } else if (!large || other.misses_parts()) {
            continue;
        }
        if (const std::uint64_t unlike = unlikeness(process, other); large && unlike < least) {
            best = i;
            least = unlike;
        }
    }
    return best;
}

GroupDifference difference_of(const Job& job,
                              const std::vector<ProcessGroup>& groups,
                              std::size_t group,
                              std::size_t from) {
    const ProcessSummary& a = job.processes[groups[group].front()];
    const ProcessSummary& b = job.processes[groups[from].front()];
    GroupDifference made{.group = group,
                         .from = from,
                         .reasons = reasons_between(a, b),
                         .reserved = difference(peak_of(a), peak_of(b)),
                         .allocated = difference(allocated_by(a), allocated_by(b))};
    const auto has = [&made](GroupReason reason) {
        return std::find(made.reasons.begin(), made.reasons.end(), reason) != made.reasons.end();
    };
    // Smaller differences are no reason for two groups.
    const std::uint64_t limit = has(GroupReason::kPeak) || has(GroupReason::kAllocated)
                                    ? std::max(peak_of(a), peak_of(b)) / kPeakTolerance
                                    : std::min(peak_of(a), peak_of(b)) / kLineTolerance;
    if (a.all_segments_known() && b.all_segments_known()) {
        const std::int64_t unused = difference(unused_at_peak(a), unused_at_peak(b));
        made.unused = size_of(unused) >= limit ? unused : 0;
    }
    if (a.misses_parts() || b.misses_parts()) {
        return made;  // memory from before the recording has other lines
    }
    const AllLines of_a(a);
    const AllLines of_b(b);
    for (const auto& [line, bytes] : of_a.bytes) {
        const auto other = of_b.bytes.find(line);
        if (other == of_b.bytes.end()) {
            add_one_sided(line, bytes, of_b.unlisted, true, &made.lines);
        } else if (other->second != bytes) {
            made.lines.push_back({line, difference(bytes, other->second), false});
        }
    }
    for (const auto& [line, bytes] : of_b.bytes) {
        if (!of_a.bytes.contains(line)) {
            add_one_sided(line, bytes, of_a.unlisted, false, &made.lines);
        }
    }
    std::stable_sort(made.lines.begin(), made.lines.end(), [](const auto& x, const auto& y) {
        return size_of(x.bytes) > size_of(y.bytes);
    });
    // Small differences explain nothing.
    const std::uint64_t most = made.lines.empty() ? 0 : size_of(made.lines.front().bytes);
    const std::uint64_t least =
        std::max(has(GroupReason::kLines) ? std::min(limit, most) : limit, most / 10);
    std::erase_if(made.lines,
                  [least](const LineDifference& line) { return size_of(line.bytes) < least; });
    made.lines.resize(std::min(made.lines.size(), kLinesOfGroup));
    return made;
}

}  // namespace fragtrace::analyzer
