// Reports of the driver's management library (NVML) about a card: memory of the context, and of
// other processes when memory ran out. Read from facts of the trace, which are untrusted text.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct OtherProcess {
    std::uint64_t pid = 0;
    std::uint64_t bytes = 0;  // 0 = not known
    std::string program;      // empty = not known
};

struct OtherProcesses {
    std::uint64_t sequence = 0;    // the event that caused the query, as the recorder numbers it
    std::uint64_t used_bytes = 0;  // of the card, by all processes
    std::uint64_t free_bytes = 0;
    std::uint64_t other_bytes = 0;  // by other processes, as far as known
    std::uint32_t processes = 0;    // number of other processes
    std::uint64_t largest_pid = 0;  // 0 = no other process with known bytes
    std::uint64_t largest_bytes = 0;
    std::string largest_program;     // empty = not known
    std::vector<OtherProcess> each;  // the first ones, as listed
    // Whether the list has this process under its own id. If not, its ids may be those of another
    // container.
    bool lists_self = false;
};

// Reads the facts "device.N.processes.M", in the order of M.
std::vector<OtherProcesses> other_processes(const Timeline& timeline, DeviceId device);

// The report at the refusal of this event or, if there is none, at the last refusal before it. If
// events were lost, an older one. nullptr: no report.
const OtherProcesses* report_at(const std::vector<OtherProcesses>& reports, EventIndex event);

// "pid 4711", "pid 4711 (python serve.py)"
std::string largest_process(std::uint64_t pid, const std::string& program);

struct ContextMemory {
    std::uint64_t bytes = 0;  // 0 = not known
    std::string measured;     // how it was measured
};

ContextMemory context_memory(const Timeline& timeline, DeviceId device);

}  // namespace fragtrace::analyzer
