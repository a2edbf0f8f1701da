// Runs the command of a request under the recorder, until it ends.
#pragma once

#include "launcher/arguments.h"
#include "launcher/report.h"
#include "launcher/signals.h"

namespace fragtrace::launcher {

// Throws a Refusal if the command cannot be started. Afterwards signals end this process with the
// command's exit code.
FinishedRun run_command(const Request& request, HeldSignals* signals);

// As a shell shows it: 128 + n for signal n.
int exit_code_of(int status);

}  // namespace fragtrace::launcher
