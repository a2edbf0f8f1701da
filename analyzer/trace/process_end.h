// How a process ended, as far as its trace tells: the last mark in the file, the code that its own
// exit hooks saw, the signal that its parent noted (preload/recorder/child_ends.cpp).
#pragma once

#include "analyzer/model/timeline.h"

#include <map>
#include <optional>
#include <string>

namespace fragtrace::analyzer {

struct ProcessEnd {
    Ending ending = Ending::kKilled;
    std::optional<int> code = {};    // 0 to 255; nullopt = not known, or it did not exit
    std::optional<int> signal = {};  // its number; nullopt = not known, or none killed it

    // Ended by a signal, or with a code other than 0. False where it is not known.
    [[nodiscard]] bool failed() const { return signal.has_value() || code.value_or(0) != 0; }
};

// `facts` are those of the trace: untrusted.
ProcessEnd process_end(Ending ending, const std::map<std::string, std::string>& facts);

// The fact that names the signal.
inline constexpr const char* kSignalFact = "end.signal";

// "SIGSEGV"; "signal 40" for one without a name.
std::string signal_name(int signal);

}  // namespace fragtrace::analyzer
