// How and when a process ended, from its trace. Sources: the last mark in the file, the exit code
// that its own exit hooks saw, the signal that its parent noted (preload/recorder/child_ends.cpp),
// and when its drain ran last.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace fragtrace::analyzer {

struct ProcessEnd {
    Ending ending = Ending::kNotRecorded;
    std::optional<int> code = {};    // 0 to 255; nullopt = not known, or no exit
    std::optional<int> signal = {};  // signal number; nullopt = not known, or not killed

    // Whether the process died, or ended with an exit code other than 0. False if neither is known.
    [[nodiscard]] bool failed() const { return ending == Ending::kKilled || code.value_or(0) != 0; }

    // Whether it is unknown if the process has ended.
    [[nodiscard]] bool unknown() const { return ending == Ending::kNotRecorded; }
};

// `facts` are the facts of the trace. They are untrusted.
ProcessEnd process_end(Ending ending, const std::map<std::string, std::string>& facts);

// The same for a whole trace. If parts of it cannot be read: end_despite_damage().
ProcessEnd process_end(const Timeline& trace);

// The keys of the facts with the signal's number, with the time at which the parent saw it, with
// the time at which the drain ran last, and with the time at which the next program of the process
// began, after an exec. Times are nanoseconds of CLOCK_MONOTONIC.
inline constexpr const char* kSignalFact = "end.signal";
inline constexpr const char* kSignalSeenFact = "end.signal_seen_ns";
inline constexpr const char* kAliveFact = "recorder.alive_ns";
inline constexpr const char* kNextProgramFact = "recorder.next_program_ns";

// Bounds of the time at which a program ended that was killed or replaced by exec, since the start
// of its trace.
struct KilledBetween {
    std::optional<std::uint64_t> alive_ns = {};  // it ended after this
    // Its parent saw then that it had ended, or its next program had begun.
    std::optional<std::uint64_t> seen_ns = {};
};

// `start_monotonic_ns` is that of the trace's header. Times before it are left out.
KilledBetween killed_between(const std::map<std::string, std::string>& facts,
                             std::uint64_t start_monotonic_ns);

// The end of a process whose trace is damaged or was cut off: the end mark may be lost. Known only
// by its mark, its signal, or its ring, from which `killed` has the time.
ProcessEnd end_despite_damage(const ProcessEnd& end, const KilledBetween& killed);

// "SIGSEGV"; "signal 40" for a signal without a name.
std::string signal_name(int signal);

}  // namespace fragtrace::analyzer
