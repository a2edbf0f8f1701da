// Removes from a trace everything that names a person, a machine or a program, so that it can be
// sent to others.
//
// Events, times, sizes, addresses and the shape of every stack stay. Functions, files, modules,
// ranges and pools become numbers; the same name always becomes the same number. A fact is kept
// only if its key is known and its value consists of numbers or words of the format.
#pragma once

#include "analyzer/support/result.h"

#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// Returns the bytes of a new trace file. It includes the events in the ring of a dead process.
// `is_setting` tells the settings of an allocator from other texts (is_pool_setting).
// Errors (kInput): as read_trace(); also for snapshots and for a process that is still running.
Result<std::string> anonymize_trace(const std::string& path, bool (*is_setting)(std::string_view));

}  // namespace fragtrace::analyzer
