// Finds stacks that the recorder may have cut. It keeps the innermost frames up to a limit,
// separately for native and Python frames. A stack with that many frames may lack its outer
// callers.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// The limit on frames per stack, for native and for Python frames.
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
