// Groups of equal processes of a job, and how the groups differ.
#pragma once

#include "analyzer/analysis/job/job.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Processes like the first member: of its generation, with a rank if it has one, out of memory if
// it ran out, as many devices, peaks of reserved and of allocated memory that differ from its peaks
// by at most 5 %, and large lines (10 % of the peak and more) that differ by at most 10 % of the
// peak. The first member stands for all.
struct ProcessGroup {
    // Indices into Job::processes, ascending; first those whose recording is whole.
    std::vector<std::size_t> members = {};
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

// Equal processes are found by their fingerprint. Only one of them is compared with other groups.
// Adds processes that are like none of the first 64 groups to `rest`. Groups of ranks come first,
// then whole recordings, then the largest. Ranks that used no device are in it if others used one.
std::vector<ProcessGroup> groups_of(const Job& job, std::vector<std::size_t>* rest);

// Whether a group of this many members is an exception beside one of `others` members.
constexpr bool is_small(std::size_t members, std::size_t others) {
    return members * 10 <= others;
}

// The group with which a later one is compared: of its generation, the one with most members or,
// if the group has at most a tenth of them, the likest one of those that are ten times as large.
// nullopt: there is none before it. A damaged or partial recording only if there is no whole one.
std::optional<std::size_t> compared_with(const Job& job,
                                         const std::vector<ProcessGroup>& groups,
                                         std::size_t group);

// Compares the first members of two groups.
GroupDifference difference_of(const Job& job,
                              const std::vector<ProcessGroup>& groups,
                              std::size_t group,
                              std::size_t from);

}  // namespace fragtrace::analyzer
