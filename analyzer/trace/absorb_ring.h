// Moves a ring's surplus into the trace file for good.
#pragma once

#include "analyzer/trace/ring.h"

#include <map>
#include <string>

namespace fragtrace::analyzer {

// Appends the surplus to the trace file, syncs it and removes the ring. Both must be the very files
// that were read, and belong to the user that this program runs as. False otherwise, or if the
// trace cannot be written or changed since it was opened; the ring then stays.
bool absorb_ring(const std::string& trace_path,
                 const InputFile& trace,
                 const RingContents& ring,
                 const RingSurplus& surplus);
// Whether a trace with these facts has absorbed its ring.
bool was_absorbed(const std::map<std::string, std::string>& facts);

}  // namespace fragtrace::analyzer
