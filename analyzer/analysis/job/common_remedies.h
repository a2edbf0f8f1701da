// What would help all processes of a job: a card on which all fit, a setting under which fewer
// fail, or equal shares of the memory.
#pragma once

#include "analyzer/analysis/job/job_groups.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// A card on which all processes fit.
struct CommonCard {
    // Without a replay: the largest peak of reserved memory plus what was outside the pool. Enough
    // for all; less may do. 0 = not known, for example because a process ran out of memory.
    std::uint64_t enough_bytes = 0;
    // With replays: the smallest card that was replayed on which all groups fit. 0 = none, or not
    // replayed.
    std::uint64_t replayed_bytes = 0;
    std::string name = {};           // of that card
    std::string class_words = {};    // the least certain class of the replays
    bool only_past_failure = false;  // a run gets past its failure there; what follows is unknown
    std::vector<std::size_t> replayed = {};  // the processes that were replayed
    std::size_t stand_for = 0;               // number of processes of their groups
};

// What the pools of the recorded processes need for certain, and what the rest of the failed steps
// is forecast to need.
struct NeededMemory {
    std::size_t process = 0;  // that needs most
    // At least: its peak of allocated memory or, at an out-of-memory that it did not get past, what
    // was allocated then plus the request.
    std::uint64_t pool_bytes = 0;
    bool at_failure = false;  // it is the latter
    // An estimate: the largest FailureSummary::forecast_card_bytes. 0 = no forecast.
    std::uint64_t forecast_card_bytes = 0;
    std::size_t forecast_process = 0;
};

// A setting that was replayed on one process of each replayed group.
struct CommonSetting {
    std::string name = {};
    std::uint64_t ooms = 0;  // sum over the replayed processes
    std::uint64_t recorded_ooms = 0;
    std::uint64_t retries = 0;
    std::uint64_t recorded_retries = 0;
    std::uint64_t peak_reserved = 0;  // the largest
    std::uint64_t recorded_peak_reserved = 0;
    std::string class_words = {};
    bool only_past_failure = false;
    // Whether the rest of the failed step is forecast to fit on all replayed processes that ran out
    // of memory. nullopt = not forecast for all of them.
    std::optional<bool> rest_fits = {};
    std::vector<std::size_t> replayed = {};
    std::size_t stand_for = 0;
};

// The rank that ran out of memory needed clearly more than the others, and equal shares of what all
// ranks needed would fit its card. An estimate: not all memory can be moved to other ranks.
struct UnequalShares {
    std::size_t process = 0;  // the rank that ran out of memory
    // At least: what was allocated at the failure and the request, or its peak if that is more.
    std::uint64_t needed_bytes = 0;
    std::size_t others = 0;
    std::uint64_t least_bytes = 0;  // peaks of the others
    std::uint64_t most_bytes = 0;
    std::uint64_t equal_bytes = 0;     // an equal share
    std::uint64_t capacity_bytes = 0;  // the least of all ranks
};

// One replayed process per group, and what it stands for.
struct Replayed {
    std::vector<std::size_t> processes;
    std::size_t stand_for = 0;
    bool all_groups = true;  // false: some group was not replayed
};

// `all_compared`: every process is in one of the groups.
Replayed replayed_of(const Job& job, const std::vector<ProcessGroup>& groups, bool all_compared);

// nullopt: no process requested memory of a pool.
std::optional<NeededMemory> needed_memory(const Job& job);

// nullopt: not known, or processes share a card.
std::optional<CommonCard> common_card(const Job& job, const Replayed& replayed);

// The best setting that helps. nullopt: none does, or none was replayed.
std::optional<CommonSetting> common_setting(const Job& job, const Replayed& replayed);

// nullopt: the shares are not clearly unequal, equal ones would not fit, or this is not known.
std::optional<UnequalShares> unequal_shares(const Job& job);

}  // namespace fragtrace::analyzer
