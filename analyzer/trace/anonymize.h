// A trace without anything that names a person, a machine or a program: what can be sent to others.
//
// Events, times, sizes and addresses stay, and so does the shape of every stack. Functions, files,
// modules, ranges and pools become numbers, the same one wherever the same name stood. Facts are
// kept only where their key is known and their value is made of numbers or words of the format.
#pragma once

#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

// The bytes of a new trace file; what the ring of a dead process holds is in it. Errors (kInput) as
// of read_trace(); kInput also for snapshots and for a process that still runs.
Result<std::string> anonymize_trace(const std::string& path);

}  // namespace fragtrace::analyzer
