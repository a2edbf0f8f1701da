// Rules that every simulated pool keeps for any script of calls.
//
// A new pool is covered once it is in the registry. Its own test adds the settings that deserve the
// same checks (docs/hacking.md, "A simulated pool").
#pragma once

#include <string>

namespace fragtrace::analyzer {

// Random calls on cards of many sizes: clones, frees of unknown blocks, refusals, and adopting
// another pool's blocks. Bookkeeping that shares no code with the pools checks every placement. At
// the end no free block may be lost: each can serve a request or is returned to the device.
void check_conformance(const std::string& pool, const std::string& config = "");

}  // namespace fragtrace::analyzer
