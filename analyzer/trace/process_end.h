// How a process ended, from its trace. Sources: the last mark in the file, the exit code that its
// own exit hooks saw, and the signal that its parent noted (preload/recorder/child_ends.cpp).
#pragma once

#include "analyzer/model/timeline.h"

#include <map>
#include <optional>
#include <string>

namespace fragtrace::analyzer {

struct ProcessEnd {
    Ending ending = Ending::kKilled;
    std::optional<int> code = {};    // 0 to 255; nullopt = not known, or no exit
    std::optional<int> signal = {};  // signal number; nullopt = not known, or not killed

    // Whether a signal or an exit code other than 0 ended the process. False if neither is known.
    [[nodiscard]] bool failed() const { return signal.has_value() || code.value_or(0) != 0; }
};

// `facts` are the facts of the trace. They are untrusted.
ProcessEnd process_end(Ending ending, const std::map<std::string, std::string>& facts);

// The key of the fact with the signal's number.
inline constexpr const char* kSignalFact = "end.signal";

// "SIGSEGV"; "signal 40" for a signal without a name.
std::string signal_name(int signal);

}  // namespace fragtrace::analyzer
