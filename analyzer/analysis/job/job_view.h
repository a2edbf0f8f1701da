// What a job has in common and where its processes differ: what became of the others after the
// first failure, groups of equal processes, what makes a group differ, the card on which all fit,
// the setting that helps all, and cards that several processes share.
//
// Everything follows from process summaries, so it is the same whether they come from traces or
// from files.
#pragma once

#include "analyzer/analysis/job/common_remedies.h"
#include "analyzer/analysis/job/generation_ends.h"
#include "analyzer/analysis/job/job_groups.h"
#include "analyzer/analysis/job/shared_cards.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

struct JobView {
    std::uint64_t start_unix_ns = 0;  // of the first process; 0 = not known
    std::vector<GenerationEnd> generations;
    std::vector<ProcessGroup> groups;  // groups_of()
    // One per group that is not the largest of its generation. Groups with the first failures come
    // first, then the smallest groups.
    std::vector<GroupDifference> differences;
    // Processes that are like none of the first 64 groups. They are compared with nothing.
    std::vector<std::size_t> not_compared;
    std::optional<UnequalShares> shares;
    std::optional<CommonCard> card;
    std::optional<NeededMemory> needed;
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
