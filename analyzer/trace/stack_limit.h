// Stacks that the recorder may have cut: of each kind, native and Python, it keeps the innermost
// frames up to a limit. The callers of a stack with as many frames may be missing.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// The most frames of each kind that the recorder kept.
std::uint64_t stack_depth_limit(const Timeline& timeline);

// The origins whose native or Python stack reaches the limit.
class CutStacks {
  public:
    explicit CutStacks(const Timeline& timeline);

    [[nodiscard]] bool contains(OriginId origin) const {
        return origin < cut_.size() && cut_[origin];
    }

  private:
    std::vector<bool> cut_;
};

}  // namespace fragtrace::analyzer
