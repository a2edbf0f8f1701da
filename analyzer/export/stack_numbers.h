// The stacks of a timeline by number. Equal stacks of different threads have one number.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace fragtrace::analyzer {

class StackNumbers {
  public:
    explicit StackNumbers(const Timeline& timeline) {
        std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
        numbers[{0, 0, 0}] = 0;
        origins_.push_back(0);
        for (OriginId id = 0; id < timeline.origins.size(); ++id) {
            const Origin& origin = timeline.origins[id];
            const auto [found, is_new] = numbers.try_emplace(
                {origin.native_stack, origin.python_stack, origin.label}, origins_.size());
            if (is_new) {
                origins_.push_back(id);
            }
            stacks_.push_back(found->second);
        }
    }

    [[nodiscard]] std::uint32_t of(OriginId origin) const {
        return origin < stacks_.size() ? stacks_[origin] : 0;
    }

    // Per stack, one origin that has it. Stack 0 is "no stack was recorded".
    [[nodiscard]] const std::vector<OriginId>& origins() const { return origins_; }

  private:
    std::vector<std::uint32_t> stacks_;  // per origin
    std::vector<OriginId> origins_;
};

}  // namespace fragtrace::analyzer
