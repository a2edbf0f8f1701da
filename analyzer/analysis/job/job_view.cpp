#include "analyzer/analysis/job/job_view.h"

#include "analyzer/analysis/metrics/known_figures.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kPeakTolerance = 20;  // 1/20 = 5 %
constexpr std::uint64_t kLineTolerance = 10;  // 1/10 of the peak
constexpr std::size_t kMostLines = 4;
constexpr std::size_t kMostGroups = 64;
constexpr std::uint64_t kSecondNs = 1'000'000'000;

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

// Equal processes are found by their fingerprint. Only one of them is compared with other groups.
// Adds processes that are like none of the first kMostGroups groups to `rest`.
std::vector<ProcessGroup> groups_of(const Job& job, std::vector<std::size_t>* rest) {
    std::vector<ProcessGroup> groups;
    std::unordered_map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& process = job.processes[i];
        if (process.devices.empty()) {
            continue;
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
    // Ranks come first: the others are compared with them, not with their many helpers.
    std::stable_sort(groups.begin(), groups.end(), [&job](const auto& a, const auto& b) {
        const auto key = [&job](const ProcessGroup& group) {
            return std::pair(job.processes[group.front()].place.rank >= 0, group.members.size());
        };
        return key(a) > key(b);
    });
    return groups;
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
        all += waste.rounding + waste.slack + waste.releasable + waste.inactive_split;
    }
    return all;
}

std::uint64_t size_of(std::int64_t difference) {
    return static_cast<std::uint64_t>(difference < 0 ? -difference : difference);
}

std::uint64_t allocated_by(const ProcessSummary& process) {
    return process.sum(&RunFigures::peak_allocated);
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
    made.lines.resize(std::min(made.lines.size(), kMostLines));
    return made;
}

// Whether an out-of-memory of another host came within a second after the first one.
bool as_early(const ProcessSummary& first, const ProcessSummary& other, std::uint64_t oom_ns) {
    const auto at_ns = first.named_oom();
    return at_ns && other.place.host != first.place.host && oom_ns - *at_ns < kSecondNs;
}

// Whether `other` may have failed before `first`, because the end of `first` is not known exactly.
bool maybe_earlier(const ProcessSummary& first, const ProcessSummary& other) {
    const auto latest = first.ended_by();
    return !first.first_oom() && (!latest || other.ended_at() < *latest) &&
           ended_by_others(first) == ended_by_others(other);
}

// The ranks below the world size that are not among `ranks`.
void find_missing(const std::set<int>& ranks, GenerationEnd* made) {
    constexpr std::size_t kMostRanges = 8;
    const int end = static_cast<int>(made->world_size);
    int next = 0;
    const auto skip_to = [&](int rank) {
        if (rank > next) {
            made->ranks_missing += static_cast<std::size_t>(rank - next);
            if (made->missing.size() < kMostRanges) {
                made->missing.emplace_back(next, rank - 1);
            }
        }
        next = rank == end ? end : rank + 1;
    };
    for (auto rank = ranks.begin(); rank != ranks.end() && *rank < end; ++rank) {
        skip_to(*rank);
    }
    skip_to(end);
}

// Few passes over the processes, however many generations they claim.
std::vector<GenerationEnd> generation_ends(const Job& job) {
    using Key = std::tuple<int, int, int>;

    struct Ends {
        GenerationEnd made;
        std::map<Key, std::pair<ProcessEnd, std::size_t>> otherwise;
    };

    std::map<int, Ends> generations;
    for (const FirstFailure& first : first_failures(job)) {
        generations[generation_of(job.processes[first.process])].made.first = first;
    }
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& process = job.processes[i];
        auto& [made, otherwise] = generations[generation_of(process)];
        ++made.processes;
        if (made.first && made.first->process == i) {
            continue;
        }
        if (const auto oom = process.named_oom()) {
            ++made.also_out_of_memory;
            if (!made.as_early && made.first &&
                as_early(job.processes[made.first->process], process, *oom)) {
                made.as_early = i;
            }
        } else if (process.end.failed()) {
            const Key key{static_cast<int>(process.end.ending),
                          process.end.code.value_or(-1),
                          process.end.signal.value_or(-1)};
            auto& [end, count] = otherwise[key];
            end = process.end;
            ++count;
            if (!made.maybe_earlier && made.first &&
                maybe_earlier(job.processes[made.first->process], process)) {
                made.maybe_earlier = i;
            }
        } else {
            ++made.did_not_fail;
        }
    }
    std::map<int, GenerationRanks> all_ranks = ranks_by_generation(job);
    std::vector<GenerationEnd> all;
    for (auto& [generation, ends] : generations) {
        ends.made.generation = generation;
        ends.made.world_size = all_ranks[generation].world_size;
        find_missing(all_ranks[generation].ranks, &ends.made);
        std::vector<std::pair<ProcessEnd, std::size_t>>& failed = ends.made.failed_otherwise;
        for (const auto& [key, end] : ends.otherwise) {
            failed.push_back(end);
        }
        std::stable_sort(failed.begin(), failed.end(), [](const auto& a, const auto& b) {
            return a.second > b.second;
        });
        all.push_back(std::move(ends.made));
    }
    return all;
}

// The bytes of a card that were not for the pool; nullopt = not known.
std::optional<std::uint64_t> outside_pool(const ProcessDevice& device) {
    if (device.total_bytes == 0 || device.capacity_bytes == 0 ||
        device.capacity_bytes > device.total_bytes) {
        return std::nullopt;
    }
    return device.total_bytes - device.capacity_bytes;
}

std::uint64_t enough_for_all(const Job& job) {
    std::uint64_t enough = 0;
    for (const ProcessSummary& process : job.processes) {
        for (const ProcessDevice& device : process.devices) {
            const auto outside = outside_pool(device);
            if (device.run.ooms != 0 || device.state_only || !segments_known(device.run) ||
                !outside) {
                return 0;
            }
            enough = std::max(
                enough,
                std::max(device.run.peak_reserved, device.run.peak_with_past_pool) + *outside);
        }
    }
    return enough;
}

// The least certain of two classes in words. Words that are equal stay.
std::string less_certain(const std::string& a, const std::string& b) {
    const auto doubt = [](const std::string& words) {
        return words.empty() ? 0 : words.starts_with("exact") ? 1 : words == "estimate" ? 3 : 2;
    };
    return doubt(a) >= doubt(b) ? a : b;
}

// One replayed process per group, and what it stands for.
struct Replayed {
    std::vector<std::size_t> processes;
    std::size_t stand_for = 0;
    bool all_groups = true;  // false: some group was not replayed
};

Replayed replayed_of(const Job& job, const JobView& view) {
    Replayed made;
    made.all_groups = view.not_compared.empty();
    for (const ProcessGroup& group : view.groups) {
        const ProcessSummary& process = job.processes[group.shown];
        if (process.replayed) {
            made.processes.push_back(group.shown);
            made.stand_for += group.members.size();
        } else {
            made.all_groups = false;
        }
    }
    std::sort(made.processes.begin(), made.processes.end());
    return made;
}

// Calls visit(device) for each replayed device that has rows; false if one has none.
template <typename Visit>
bool for_each_replayed(const Job& job,
                       const Replayed& replayed,
                       std::vector<ReplaySummary> ProcessDevice::*rows,
                       Visit visit) {
    bool any = false;
    for (const std::size_t at : replayed.processes) {
        for (const ProcessDevice& device : job.processes[at].devices) {
            if ((device.*rows).empty()) {
                return false;
            }
            any = true;
            visit(device);
        }
    }
    return any;
}

const ReplaySummary* find_row(const std::vector<ReplaySummary>& rows, const std::string& name) {
    const auto found = std::find_if(
        rows.begin(), rows.end(), [&](const ReplaySummary& row) { return row.name == name; });
    return found == rows.end() ? nullptr : &*found;
}

// The replay on this card. Without one, a run that did not fail needs no replay on a card that has
// room for its peak: nothing changes for it there.
bool fits_on(const ProcessDevice& device, std::uint64_t total_bytes, const std::string& name) {
    if (const ReplaySummary* row = find_row(device.cards, name)) {
        return row->ooms == 0 && row->usable;
    }
    const auto outside = outside_pool(device);
    return device.run.ooms == 0 && !device.state_only && segments_known(device.run) && outside &&
           std::max(device.run.peak_reserved, device.run.peak_with_past_pool) + *outside <=
               total_bytes;
}

std::optional<CommonCard> common_card(const Job& job, const Replayed& replayed) {
    // What one process needs says nothing about a card on which others need memory, too.
    if (has_shared_card(job)) {
        return std::nullopt;
    }
    constexpr std::size_t kMostCards = 1000;  // reports replay fewer than 32
    CommonCard card{.enough_bytes = enough_for_all(job)};
    std::set<std::pair<std::uint64_t, std::string>> candidates;
    const bool known =
        replayed.all_groups &&
        for_each_replayed(job, replayed, &ProcessDevice::cards, [&](const ProcessDevice& device) {
            for (const ReplaySummary& row : device.cards) {
                if (candidates.size() < kMostCards) {
                    candidates.emplace(row.total_bytes, row.name);
                }
            }
        });
    for (const auto& candidate : candidates) {
        const std::uint64_t total_bytes = candidate.first;
        const std::string& name = candidate.second;
        bool fits = known && total_bytes != 0 && card.replayed_bytes == 0;
        for_each_replayed(job, replayed, &ProcessDevice::cards, [&](const ProcessDevice& device) {
            fits = fits && fits_on(device, total_bytes, name);
        });
        if (fits) {
            card.replayed_bytes = total_bytes;
            card.name = name;
        }
    }
    if (card.replayed_bytes != 0) {
        card.replayed = replayed.processes;
        card.stand_for = replayed.stand_for;
        for_each_replayed(job, replayed, &ProcessDevice::cards, [&](const ProcessDevice& device) {
            const ReplaySummary* row = find_row(device.cards, card.name);
            card.class_words =
                less_certain(card.class_words, row == nullptr ? "exact" : row->class_words);
            card.only_past_failure |= row != nullptr && row->gets_past;
        });
    }
    return card.enough_bytes != 0 || card.replayed_bytes != 0 ? std::optional(card) : std::nullopt;
}

// One forecast of two. A step that fails on one device fails.
std::optional<bool> both_fit(std::optional<bool> one, std::optional<bool> other) {
    if (one == false || other == false) {
        return false;
    }
    return one && other ? std::optional(true) : std::nullopt;
}

// The sum of a setting over all replayed devices; nullopt if one device has no usable such row.
std::optional<CommonSetting> setting_of(const Job& job,
                                        const Replayed& replayed,
                                        const std::string& name) {
    CommonSetting setting{
        .name = name, .replayed = replayed.processes, .stand_for = replayed.stand_for};
    bool all = true;
    const bool known = for_each_replayed(
        job, replayed, &ProcessDevice::settings, [&](const ProcessDevice& device) {
            const ReplaySummary* row = find_row(device.settings, name);
            const auto recorded = std::find_if(
                device.settings.begin(), device.settings.end(), [](const ReplaySummary& other) {
                    return other.recorded;
                });
            if (row == nullptr || !row->usable || recorded == device.settings.end()) {
                all = false;
                return;
            }
            setting.ooms += row->ooms;
            setting.recorded_ooms += recorded->ooms;
            setting.retries += row->retries;
            setting.recorded_retries += recorded->retries;
            setting.peak_reserved = std::max(setting.peak_reserved, row->peak_reserved);
            setting.recorded_peak_reserved =
                std::max(setting.recorded_peak_reserved, recorded->peak_reserved);
            setting.class_words = less_certain(setting.class_words, row->class_words);
            if (row->gets_past) {
                setting.rest_fits = setting.only_past_failure
                                        ? both_fit(setting.rest_fits, row->rest_fits)
                                        : row->rest_fits;
                setting.only_past_failure = true;
            }
            // A device that did not fail must not fail under a setting for all.
            all = all && (row->ooms == 0 || row->ooms < recorded->ooms);
        });
    return known && all ? std::optional(setting) : std::nullopt;
}

// Whether the setting is worth naming: it avoids an out-of-memory or, if there is none, a retry or
// 2 % of the largest peak.
bool helps(const CommonSetting& setting) {
    constexpr std::uint64_t kLittle = 50;
    if (setting.recorded_ooms != 0) {
        return setting.ooms < setting.recorded_ooms;
    }
    return setting.retries < setting.recorded_retries ||
           (setting.retries == setting.recorded_retries &&
            setting.peak_reserved + setting.recorded_peak_reserved / kLittle <
                setting.recorded_peak_reserved);
}

std::optional<CommonSetting> common_setting(const Job& job, const Replayed& replayed) {
    if (replayed.processes.empty() || job.processes[replayed.processes.front()].devices.empty()) {
        return std::nullopt;
    }
    std::optional<CommonSetting> best;
    for (const ReplaySummary& row :
         job.processes[replayed.processes.front()].devices.front().settings) {
        if (row.recorded) {
            continue;
        }
        const auto setting = setting_of(job, replayed, row.name);
        const auto cost = [](const CommonSetting& made) {
            return std::tuple(
                made.ooms, !made.rest_fits.value_or(true), made.retries, made.peak_reserved);
        };
        if (setting && helps(*setting) && (!best || cost(*setting) < cost(*best))) {
            best = setting;
        }
    }
    return best;
}

std::optional<UnequalShares> unequal_shares(const Job& job) {
    constexpr std::uint64_t kClearly = 4;  // a quarter more than the largest of the others
    const auto first = first_failure(job);
    if (!first || !first->out_of_memory) {
        return std::nullopt;
    }
    const ProcessSummary& failed = job.processes[first->process];
    const FailureSummary* failure = failed.named_failure();
    if (failure == nullptr || failed.place.rank < 0 || failed.devices.size() != 1) {
        return std::nullopt;
    }
    UnequalShares shares{
        .process = first->process,
        .needed_bytes = failed.devices[0].run.peak_allocated + failure->requested_bytes,
        .least_bytes = ~std::uint64_t{0},
        .capacity_bytes = failed.devices[0].capacity_bytes};
    std::uint64_t all = shares.needed_bytes;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& other = job.processes[i];
        if (i == first->process || other.place.rank < 0 || other.devices.size() != 1 ||
            generation_of(other) != generation_of(failed)) {
            continue;
        }
        std::uint64_t peak = other.devices[0].run.peak_allocated;
        if (other.named_oom()) {
            const FailureSummary* const also = other.named_failure();
            if (also == nullptr) {
                return std::nullopt;  // what it needed is not known
            }
            peak += also->requested_bytes;
        }
        ++shares.others;
        shares.least_bytes = std::min(shares.least_bytes, peak);
        shares.most_bytes = std::max(shares.most_bytes, peak);
        all += peak;
    }
    shares.equal_bytes = all / (shares.others + 1);
    const bool clearly = shares.needed_bytes > shares.most_bytes + shares.most_bytes / kClearly;
    return shares.others != 0 && clearly && shares.equal_bytes < shares.capacity_bytes
               ? std::optional(shares)
               : std::nullopt;
}

}  // namespace

JobView view_of(const Job& job) {
    JobView view;
    for (const ProcessSummary& process : job.processes) {
        if (process.start_unix_ns != 0) {
            view.start_unix_ns = view.start_unix_ns == 0
                                     ? process.start_unix_ns
                                     : std::min(view.start_unix_ns, process.start_unix_ns);
        }
    }
    view.generations = generation_ends(job);
    view.groups = groups_of(job, &view.not_compared);
    std::map<int, std::size_t> largest;  // group of each generation
    for (std::size_t i = 0; i < view.groups.size(); ++i) {
        const int generation = generation_of(job.processes[view.groups[i].front()]);
        const auto [at, is_first] = largest.emplace(generation, i);
        if (!is_first) {
            view.differences.push_back(difference_of(job, view.groups, i, at->second));
        }
    }
    const Replayed replayed = replayed_of(job, view);
    view.settings_replayed = !replayed.processes.empty();
    view.shares = unequal_shares(job);
    view.card = common_card(job, replayed);
    view.setting = common_setting(job, replayed);
    view.shared = shared_cards(job);
    return view;
}

std::vector<std::size_t> representatives(const Job& job, std::size_t most) {
    std::vector<std::size_t> chosen;
    const auto choose = [&](std::size_t at) {
        const bool is_new = std::find(chosen.begin(), chosen.end(), at) == chosen.end();
        if (is_new && chosen.size() < most && !job.processes[at].path.empty() &&
            !job.processes[at].replayed) {
            chosen.push_back(at);
        }
    };
    const auto failure = first_failure(job);
    if (failure) {
        choose(failure->process);
    }
    for (const FirstFailure& of_generation : first_failures(job)) {
        if (of_generation.out_of_memory) {
            choose(of_generation.process);
        }
    }
    std::vector<std::size_t> rest;
    for (const ProcessGroup& group : groups_of(job, &rest)) {
        const bool known = std::any_of(group.members.begin(), group.members.end(), [&](auto at) {
            return job.processes[at].replayed ||
                   std::find(chosen.begin(), chosen.end(), at) != chosen.end();
        });
        const auto at_hand = std::find_if(group.members.begin(), group.members.end(), [&](auto at) {
            return !job.processes[at].path.empty();
        });
        if (!known && at_hand != group.members.end()) {
            choose(*at_hand);
        }
    }
    return chosen;
}

}  // namespace fragtrace::analyzer
