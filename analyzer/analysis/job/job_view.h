// What a job has in common and where its processes differ: what became of the others after the
// first failure, groups of equal processes, what makes a group differ, the card on which all fit,
// the setting that helps all, and cards that several processes share.
//
// Everything follows from process summaries, so it is the same whether they come from traces or
// from files.
#pragma once

#include "analyzer/analysis/job/job.h"
#include "analyzer/analysis/job/shared_cards.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// How the processes of one generation ended.
struct GenerationEnd {
    int generation = 0;
    std::size_t processes = 0;
    std::optional<FirstFailure> first = {};
    // The other processes by how they ended, most frequent first: those that failed without an
    // out-of-memory of their own, and all others.
    std::size_t also_out_of_memory = 0;
    std::vector<std::pair<ProcessEnd, std::size_t>> failed_otherwise = {};
    std::size_t did_not_fail = 0;  // as far as is known
    // An out-of-memory of another host within a second of the first one. Clocks of hosts differ, so
    // which was first is then not certain. nullopt: none.
    std::optional<std::size_t> as_early = {};
    // When the first one ended is not known exactly, and it did not run out of memory: another
    // process that may have failed before it. nullopt: none.
    std::optional<std::size_t> maybe_earlier = {};
    std::size_t world_size = 0;     // the largest that was recorded; 0 = not known
    std::size_t ranks_missing = 0;  // below the world size, without a readable trace here
    std::vector<std::pair<int, int>> missing = {};  // these: first and last, at most eight
};

// Processes like the first member: of its generation, with a rank if it has one, out of memory if
// it ran out, as many devices, peaks of reserved and of allocated memory that differ from its peaks
// by at most 5 %, and large lines (10 % of the peak and more) that differ by at most 10 % of the
// peak. The first member stands for all.
struct ProcessGroup {
    std::vector<std::size_t> members = {};  // indices into Job::processes, ascending
    std::uint64_t least_reserved = 0;  // peaks; if reserved memory is unknown, of allocated memory
    std::uint64_t most_reserved = 0;
    std::size_t shown = 0;  // the replayed member if there is one, else the first

    [[nodiscard]] std::size_t front() const { return members.front(); }
};

// Why processes of one generation are in two groups.
enum class GroupReason : std::uint8_t {
    kDevices,      // another number of devices
    kRank,         // only one of them has a rank
    kOutOfMemory,  // only one of them ran out of memory
    kPeak,         // the peaks of a device
    kAllocated,    // the peaks of allocated memory of a device
    kLines,        // a large line of a device
};

// What a group holds more (or less) than the group with which it is compared.
struct LineDifference {
    std::string line = {};
    std::int64_t bytes = 0;
    bool at_least = false;  // one list does not have this line, because it lists only large ones
};

// Between the first members of two groups.
struct GroupDifference {
    std::size_t group = 0;  // index into JobView::groups
    std::size_t from = 0;   // the same for the largest group of its generation: compared with it
    std::vector<GroupReason> reasons = {};  // ascending, at least one
    std::int64_t reserved = 0;              // of the peaks
    std::int64_t allocated = 0;             // of the peaks of allocated memory
    // Part of `reserved` that no block used: cached, in holes, rounding; 0 = too little to matter.
    std::int64_t unused = 0;
    // The largest first, at most four. Only those that differ by at least 10 % of the smaller peak
    // or, if the peaks are a reason, 5 % of the larger peak. Of the lines that are a reason at
    // least one.
    std::vector<LineDifference> lines = {};
};

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
    std::size_t process = 0;         // the rank that ran out of memory
    std::uint64_t needed_bytes = 0;  // its peak of allocated memory, and the request that failed
    std::size_t others = 0;
    std::uint64_t least_bytes = 0;  // peaks of the others
    std::uint64_t most_bytes = 0;
    std::uint64_t equal_bytes = 0;  // an equal share
    std::uint64_t capacity_bytes = 0;
};

struct JobView {
    std::uint64_t start_unix_ns = 0;  // of the first process; 0 = not known
    std::vector<GenerationEnd> generations;
    std::vector<ProcessGroup> groups;  // the largest first; only processes that used a device
    // One per group that is not the largest of its generation.
    std::vector<GroupDifference> differences;
    // Processes that are like none of the first 64 groups. They are compared with nothing.
    std::vector<std::size_t> not_compared;
    std::optional<UnequalShares> shares;
    std::optional<CommonCard> card;
    std::optional<CommonSetting> setting;  // nullopt: not replayed, or none is better
    bool settings_replayed = false;
    std::vector<SharedCard> shared;
};

JobView view_of(const Job& job);

// The processes to replay: the one that failed first, the first out-of-memory of each generation,
// then one of each group, the largest group first; at most `most`. Only processes whose trace is at
// hand.
std::vector<std::size_t> representatives(const Job& job, std::size_t most);

}  // namespace fragtrace::analyzer
