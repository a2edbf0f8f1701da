// Checks a planned placement: buffers with lifetimes and offsets, as MiniMalloc writes them.
#pragma once

#include "analyzer/support/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

struct PlanCheck {
    std::uint64_t buffers = 0;
    std::uint64_t height_bytes = 0;  // end of the highest buffer
    std::uint64_t load_bytes = 0;    // most that live at one time: no plan can be lower
    std::string violation;           // in one line, the first in time; empty = none
};

// Reads "id,lower,upper,size,offset" lines under a heading (columns in any order), lifetimes
// half-open. `name` is for messages. Errors are kInput and name the line.
Result<PlanCheck> check_plan(std::string_view text,
                             const std::string& name,
                             std::optional<std::uint64_t> capacity_bytes);

}  // namespace fragtrace::analyzer
