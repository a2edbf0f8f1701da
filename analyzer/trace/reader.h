// Reads a trace file into a Timeline.
//
// Works with and without a footer, for processes that ended, were killed or still run, and with
// damaged files. Everything intact is kept; Timeline::damage counts the rest. Fails (kInput) only
// if the file is missing, foreign, of a newer version or its header is damaged.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

struct ReadOptions {
    bool use_ring = true;  // also read events that are only in the ring
    // If the process is dead, move the ring's events permanently into the file. Only the report
    // does so: see docs/trace-format.md, "Who may change a trace".
    bool absorb_ring = false;
};

Result<Timeline> read_trace(const std::string& path, const ReadOptions& options = {});

}  // namespace fragtrace::analyzer
