// What `fragtrace doctor` looks at besides the program: the driver and its cards, the places for
// traces and ring, limits, containers, and what else is loaded into programs.
#pragma once

#include "launcher/finding.h"
#include "launcher/libraries.h"

namespace fragtrace::launcher {

// Sets `has_card` to whether a CUDA program could use a card.
void look_at_driver(const Installation& installation, bool* has_card, Findings* all);

// Whether libcuda.so.1 cannot be loaded. Does not start the driver, which can take seconds.
bool lacks_driver();

// Checks the settings, the recorder's library, and the analyzer.
void look_at_installation(const Installation& installation, Findings* all);

void look_at_trace_folder(Findings* all);
void look_at_ring(Findings* all);
void look_at_limits(Findings* all);
void look_at_container(Findings* all);
void look_at_other_tools(Findings* all);

// With too little free space, the recorder would lose every event. Returns a sentence about it, or
// "". `keep_free` is the value of --keep-free, or "" for the recorder's own.
std::string space_warning(const std::string& folder, const std::string& keep_free);

}  // namespace fragtrace::launcher
