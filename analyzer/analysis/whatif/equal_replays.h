// Candidates whose replays cannot differ: one answers all of them.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/pools/pytorch/pytorch_config.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// What a finished replay says about other cards and settings.
struct ReplayLimits {
    std::uint64_t enough_bytes = ~std::uint64_t{0};  // FixedDevice::enough_bytes()
    std::uint64_t largest_segment_bytes = 0;         // FixedDevice::largest_bytes()
};

// `script` and `candidates` must stay as long as this.
class EqualReplays {
  public:
    EqualReplays(const ReplayScript& script, const std::vector<Candidate>& candidates);

    // The first candidate of the list that is replayed the same way: itself, where none is.
    // Settings that nothing in the script brings into effect make no difference.
    [[nodiscard]] std::size_t first(std::size_t candidate) const { return first_[candidate]; }

    // Of the candidates that differ only in the card and in max_split_size_mb, and have no such
    // limit for splits, the one with most capacity; itself, where none is.
    [[nodiscard]] std::size_t base(std::size_t candidate) const { return base_[candidate]; }

    // Whether the replay of base(candidate), which found `limits`, is the candidate's as well: the
    // card never refuses anything, and no segment is large enough to be exempt from splitting.
    [[nodiscard]] bool is_answered(std::size_t candidate, const ReplayLimits& limits) const;

  private:
    const std::vector<Candidate>& candidates_;
    // Of a PyTorch pool; none for other pools, and for wrong settings.
    std::vector<std::optional<PytorchConfig>> settings_;
    std::vector<std::size_t> first_;
    std::vector<std::size_t> base_;
};

}  // namespace fragtrace::analyzer
