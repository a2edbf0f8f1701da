// Finds candidates whose replays cannot differ, so that one replay answers all of them.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/pools/pytorch/pytorch_config.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// Facts from a finished replay that are true for other cards and split limits too.
struct ReplayLimits {
    std::uint64_t enough_bytes = ~std::uint64_t{0};  // FixedDevice::enough_bytes()
    std::uint64_t largest_segment_bytes = 0;         // FixedDevice::largest_bytes()
};

// `script` and `candidates` must outlive this object.
class EqualReplays {
  public:
    EqualReplays(const ReplayScript& script, const std::vector<Candidate>& candidates);

    // The first candidate of the list with an identical replay; the candidate itself if there is
    // none. Settings that have no effect on this script are ignored.
    [[nodiscard]] std::size_t first(std::size_t candidate) const { return first_[candidate]; }

    // Among candidates that differ only in the card and in max_split_size_mb: one without a split
    // limit, and with the largest capacity. The candidate itself if there is none.
    [[nodiscard]] std::size_t base(std::size_t candidate) const { return base_[candidate]; }

    // True if the replay of base(candidate), which found `limits`, is also the candidate's replay.
    // Then the card never refuses anything, and no segment is large enough to be exempt from
    // splitting.
    [[nodiscard]] bool is_answered(std::size_t candidate, const ReplayLimits& limits) const;

  private:
    const std::vector<Candidate>& candidates_;
    // One per candidate; nullopt for other pools and for invalid settings.
    std::vector<std::optional<PytorchConfig>> settings_;
    std::vector<std::size_t> first_;
    std::vector<std::size_t> base_;
};

}  // namespace fragtrace::analyzer
