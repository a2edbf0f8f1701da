// One process summary from parsed JSON, which is untrusted.
#pragma once

#include "analyzer/analysis/job/process_summary.h"

#include <nlohmann/json.hpp>

#include <string>

namespace fragtrace::analyzer {

// Sorted keys: many keys of a made-up file must not make look-ups slow.
using Parsed = nlohmann::json;

// A summary lacks a figure or is impossible. Thrown by the functions below; they also throw
// Parsed::exception.
struct BadSummary {
    std::string what;
};

ProcessSummary summary_of(const Parsed& json);
UnreadableTrace unreadable_of(const Parsed& json);

}  // namespace fragtrace::analyzer
