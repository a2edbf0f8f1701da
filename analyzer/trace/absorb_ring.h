// Moves a ring's surplus permanently into the trace file.
#pragma once

#include "analyzer/trace/ring_reader.h"

#include <map>
#include <string>

namespace fragtrace::analyzer {

// Appends the surplus to the trace file, syncs the file and removes the ring. Trace and ring must
// be the same files that were read, and must belong to the user that this program runs as. Returns
// false if they do not, or if the trace cannot be written or has changed since it was opened. The
// ring then stays.
bool absorb_ring(const std::string& trace_path,
                 const InputFile& trace,
                 const RingContents& ring,
                 const RingSurplus& surplus);
// After this call, absorb_ring() does nothing in this process and returns false.
void keep_rings();
// Whether a trace with these facts has absorbed its ring.
bool was_absorbed(const std::map<std::string, std::string>& facts);

}  // namespace fragtrace::analyzer
