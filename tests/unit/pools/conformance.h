// What holds for every simulated pool under any script of calls.
//
// A new pool is covered as soon as it is in the registry; its own test gives the settings that are
// worth the same (docs/hacking.md, "A simulated pool").
#pragma once

#include <string>

namespace fragtrace::analyzer {

// Random calls on cards of many sizes, every placement checked by bookkeeping that shares no code
// with the pools; clones, releases of unknown blocks, refusals, taking over another pool's blocks;
// at the end no free block is lost: each can serve, or goes back to the device.
void check_conformance(const std::string& pool, const std::string& config = "");

}  // namespace fragtrace::analyzer
