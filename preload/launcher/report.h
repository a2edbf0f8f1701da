// The messages after a run: the verdict on its traces and a line for each trace.
#pragma once

#include "launcher/signals.h"
#include "launcher/traces.h"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <sys/types.h>
#include <vector>

namespace fragtrace::launcher {

struct FinishedRun {
    Output output;  // where its traces are
    std::string job;
    timespec begin = {};  // folder_time() before the run
    pid_t process = 0;
    int status = 0;              // as waitpid returns it
    std::uint64_t ended_ns = 0;  // CLOCK_MONOTONIC when it was waited for
    bool quiet = false;
    bool off = false;  // FRAGTRACE_OFF
    bool virtual_gpu = false;
    std::string analyzer;  // the path of fraganalyze
};

// Returns find_traces() without the traces of other runs, which may write into the same folder at
// the same time. A trace without the name of a run counts as one of this run, and so does one that
// cannot be read. `others` becomes the number of the traces of other runs.
std::vector<std::string> traces_of_run(const FinishedRun& run,
                                       const HeldSignals& signals,
                                       std::size_t* others);

// Writes a few lines to standard error.
void report(const FinishedRun& run, const HeldSignals& signals);

}  // namespace fragtrace::launcher
