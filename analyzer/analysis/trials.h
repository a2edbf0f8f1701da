// What came of the changes that `fragtrace try` tried. It keeps them beside the trace.
#pragma once

#include "analyzer/model/event_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct Trial {
    DeviceId device = 0;
    std::string change;        // name of the what-if row
    std::string outcome;       // a sentence with the prediction
    std::optional<bool> held;  // nothing: nothing certain was predicted
};

// Reads TRACE.tried.json, newest trial first. Empty if there is none, or if it belongs to another
// recording of that name. If it cannot be read, `problem` says why.
std::vector<Trial> read_trials(const std::string& trace_path,
                               std::uint64_t start_unix_ns,
                               std::string* problem);

}  // namespace fragtrace::analyzer
