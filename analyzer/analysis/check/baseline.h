// Figures of an earlier run to hold a new one against, from the JSON that summarize or report
// wrote.
#pragma once

#include "analyzer/support/result.h"

#include <cstdint>
#include <map>
#include <string>

namespace fragtrace::analyzer {

struct BaselineDevice {
    std::uint64_t peak_reserved = 0;
    std::uint64_t peak_allocated = 0;
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
    std::uint64_t segments_allocated = 0;
};

using Baseline = std::map<std::uint64_t, BaselineDevice>;  // by the device's index

// Errors (kInput): no such file, no JSON (with the byte), no JSON of summarize or report, another
// schema.
Result<Baseline> read_baseline(const std::string& path);

}  // namespace fragtrace::analyzer
