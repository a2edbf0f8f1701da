// What is said after a run: the verdict on its traces and a line for each.
#pragma once

#include "launcher/signals.h"

#include <ctime>
#include <string>
#include <sys/types.h>

namespace fragtrace::launcher {

struct FinishedRun {
    std::string folder;  // of its traces
    std::string job;
    timespec begin = {};  // folder_time() before it
    pid_t process = 0;
    int status = 0;  // as waitpid gives it
    bool quiet = false;
    bool off = false;      // FRAGTRACE_OFF
    std::string analyzer;  // the path of fraganalyze
};

// To standard error, in few lines.
void report(const FinishedRun& run, const HeldSignals& signals);

}  // namespace fragtrace::launcher
