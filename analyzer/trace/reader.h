// Reads a trace file: the way from bytes to a Timeline.
//
// Works with and without a footer, for traces of processes that ended, were killed or still run,
// and with damaged files: whatever is intact is kept and the rest is counted in Timeline::damage.
// Fails (kInput) only if the file is missing, foreign, of a newer version or its header is damaged.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

struct ReadOptions {
    bool use_ring = true;  // read what the file lacks from the ring, if there is one
    // And, when the process is dead, move it into the file for good. Only the report does: see
    // docs/trace-format.md, "Who may change a trace".
    bool absorb_ring = false;
};

Result<Timeline> read_trace(const std::string& path, const ReadOptions& options = {});

}  // namespace fragtrace::analyzer
