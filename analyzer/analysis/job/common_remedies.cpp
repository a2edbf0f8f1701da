#include "analyzer/analysis/job/common_remedies.h"

#include "analyzer/analysis/job/card_needs.h"
#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/analysis/job/shared_cards.h"
#include "analyzer/analysis/metrics/known_figures.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// The bytes of the card that are not for the pool of a process; nullopt = not known. At most, as
// far as contexts are recorded: others may have begun theirs after the process last asked the
// driver.
std::optional<std::uint64_t> outside_pool(const Job& job,
                                          const CardContexts& contexts,
                                          std::size_t process,
                                          const ProcessDevice& device) {
    const auto of_all = contexts.while_ran(job, process, device);
    if (device.total_bytes == 0 || device.capacity_bytes == 0 ||
        device.capacity_bytes > device.total_bytes || !of_all) {
        return std::nullopt;
    }
    return std::max(device.total_bytes - device.capacity_bytes, *of_all);
}

std::uint64_t enough_for_all(const Job& job, const CardContexts& contexts) {
    std::uint64_t enough = 0;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        for (const ProcessDevice& device : job.processes[i].devices) {
            const auto outside = outside_pool(job, contexts, i, device);
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

// Calls visit(process, device) for each replayed device that has rows; false if one has none.
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
            visit(at, device);
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
// room for its peak: nothing changes for it there. A replay leaves room for the contexts that the
// trace knows, so its peak must also fit beside all others.
bool fits_on(const Job& job,
             const CardContexts& contexts,
             std::size_t process,
             const ProcessDevice& device,
             std::uint64_t total_bytes,
             const std::string& name) {
    if (const ReplaySummary* row = find_row(device.cards, name)) {
        const auto of_all = contexts.while_ran(job, process, device);
        return row->ooms == 0 && row->usable && of_all &&
               (*of_all == 0 || row->peak_reserved + *of_all <= total_bytes);
    }
    const auto outside = outside_pool(job, contexts, process, device);
    return device.run.ooms == 0 && !device.state_only && segments_known(device.run) && outside &&
           std::max(device.run.peak_reserved, device.run.peak_with_past_pool) + *outside <=
               total_bytes;
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
        job, replayed, &ProcessDevice::settings, [&](std::size_t, const ProcessDevice& device) {
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

// The least that a process with one device needed: at its peak or, if it did not get past an
// out-of-memory, then. nullopt = not known.
// nullopt: not known, or of several devices.
std::optional<std::uint64_t> needed_by(const ProcessSummary& process) {
    if (process.devices.size() != 1) {
        return process.devices.empty() ? std::optional<std::uint64_t>(0) : std::nullopt;
    }
    const std::uint64_t peak = process.devices[0].run.peak_allocated;
    if (!process.fatal_oom()) {
        return peak;
    }
    const FailureSummary* failure = process.named_failure();
    return failure == nullptr || failure->allocated_bytes == 0
               ? std::nullopt
               : std::optional(std::max(peak, failure->allocated_bytes + failure->requested_bytes));
}

}  // namespace

Replayed replayed_of(const Job& job, const std::vector<ProcessGroup>& groups, bool all_compared) {
    Replayed made;
    made.all_groups = all_compared;
    for (const ProcessGroup& group : groups) {
        const ProcessSummary& process = job.processes[group.shown];
        if (process.replayed) {
            made.processes.push_back(group.shown);
            made.stand_for += group.members.size();
        } else if (!process.devices.empty()) {
            made.all_groups = false;
        }
    }
    std::sort(made.processes.begin(), made.processes.end());
    return made;
}

std::optional<NeededMemory> needed_memory(const Job& job) {
    NeededMemory needed;
    const auto take = [&needed](std::size_t process, std::uint64_t bytes, bool at_failure) {
        if (bytes > needed.pool_bytes) {
            needed.process = process;
            needed.pool_bytes = bytes;
            needed.at_failure = at_failure;
        }
    };
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& process = job.processes[i];
        const auto fatal = process.fatal_oom();
        for (const ProcessDevice& device : process.devices) {
            if (!device.blocks_are_pool_blocks) {
                continue;  // it has no pool
            }
            take(i, device.run.peak_allocated, false);
            for (const FailureSummary& failure : device.failures) {
                if (fatal != process.start_unix_ns + failure.time_ns) {
                    continue;
                }
                if (failure.allocated_bytes != 0) {
                    take(i, failure.allocated_bytes + failure.requested_bytes, true);
                }
                if (failure.forecast_card_bytes > needed.forecast_card_bytes) {
                    needed.forecast_card_bytes = failure.forecast_card_bytes;
                    needed.forecast_process = i;
                }
            }
        }
    }
    return needed.pool_bytes != 0 ? std::optional(needed) : std::nullopt;
}

std::optional<CommonCard> common_card(const Job& job, const Replayed& replayed) {
    // What one process needs says nothing about a card on which others need memory, too.
    if (has_shared_card(job) || !all_recorded(job)) {
        return std::nullopt;
    }
    constexpr std::size_t kMostCards = 1000;  // reports replay fewer than 32
    const CardContexts contexts(job);
    CommonCard card{.enough_bytes = enough_for_all(job, contexts)};
    std::set<std::pair<std::uint64_t, std::string>> candidates;
    const bool known =
        replayed.all_groups &&
        for_each_replayed(
            job, replayed, &ProcessDevice::cards, [&](std::size_t, const ProcessDevice& device) {
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
        for_each_replayed(
            job, replayed, &ProcessDevice::cards, [&](std::size_t i, const ProcessDevice& device) {
                fits = fits && fits_on(job, contexts, i, device, total_bytes, name);
            });
        if (fits) {
            card.replayed_bytes = total_bytes;
            card.name = name;
        }
    }
    if (card.replayed_bytes != 0) {
        card.replayed = replayed.processes;
        card.stand_for = replayed.stand_for;
        for_each_replayed(
            job, replayed, &ProcessDevice::cards, [&](std::size_t, const ProcessDevice& device) {
                const ReplaySummary* row = find_row(device.cards, card.name);
                card.class_words =
                    less_certain(card.class_words, row == nullptr ? "exact" : row->class_words);
                card.only_past_failure |= row != nullptr && row->gets_past;
            });
    }
    return card.enough_bytes != 0 || card.replayed_bytes != 0 ? std::optional(card) : std::nullopt;
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
    if (failed.place.rank < 0 || failed.devices.size() != 1 || !failed.fatal_oom() ||
        has_shared_card(job) || !all_recorded(job, generation_of(failed))) {
        return std::nullopt;
    }
    const auto needed_bytes = needed_by(failed);
    if (!needed_bytes) {
        return std::nullopt;
    }
    UnequalShares shares{.process = first->process,
                         .needed_bytes = *needed_bytes,
                         .least_bytes = ~std::uint64_t{0},
                         .capacity_bytes = failed.devices[0].capacity_bytes};
    std::uint64_t all = shares.needed_bytes;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& other = job.processes[i];
        if (i == first->process || other.place.rank < 0 ||
            generation_of(other) != generation_of(failed)) {
            continue;
        }
        const auto needed = needed_by(other);
        if (!needed || !other.told_apart_by.empty()) {
            return std::nullopt;
        }
        ++shares.others;
        if (!other.devices.empty() && other.devices[0].capacity_bytes != 0) {
            shares.capacity_bytes =
                std::min(shares.capacity_bytes, other.devices[0].capacity_bytes);
        }
        shares.least_bytes = std::min(shares.least_bytes, *needed);
        shares.most_bytes = std::max(shares.most_bytes, *needed);
        all += *needed;
    }
    shares.equal_bytes = all / (shares.others + 1);
    const bool clearly = shares.needed_bytes > shares.most_bytes + shares.most_bytes / kClearly;
    return shares.others != 0 && clearly && shares.equal_bytes < shares.capacity_bytes
               ? std::optional(shares)
               : std::nullopt;
}

}  // namespace fragtrace::analyzer
