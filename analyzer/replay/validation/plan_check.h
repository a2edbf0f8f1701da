// Checks a planned placement: buffers with lifetimes and offsets in MiniMalloc's format.
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
    std::uint64_t load_bytes = 0;    // maximum of live bytes: no plan can be lower
    std::string violation;           // the first violation in time, in one line; empty = none
};

// Reads "id,lower,upper,size,offset" lines after a heading (columns in any order). Lifetimes are
// [lower, upper). `name` is used in messages. Errors are kInput and name the line.
Result<PlanCheck> check_plan(std::string_view text,
                             const std::string& name,
                             std::optional<std::uint64_t> capacity_bytes);

}  // namespace fragtrace::analyzer
