// The messages after a run: the verdict on its traces and a line for each trace.
#pragma once

#include "launcher/signals.h"
#include "launcher/traces.h"

#include <ctime>
#include <string>
#include <sys/types.h>

namespace fragtrace::launcher {

struct FinishedRun {
    Output output;  // where its traces are
    std::string job;
    timespec begin = {};  // folder_time() before the run
    pid_t process = 0;
    int status = 0;  // as waitpid returns it
    bool quiet = false;
    bool off = false;      // FRAGTRACE_OFF
    std::string analyzer;  // the path of fraganalyze
};

// Writes a few lines to standard error.
void report(const FinishedRun& run, const HeldSignals& signals);

}  // namespace fragtrace::launcher
