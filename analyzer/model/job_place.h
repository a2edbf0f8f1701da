// The place of a recorded process in its job, as its trace gives it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace fragtrace::analyzer {

// A process of one PID namespace.
struct ProcessId {
    std::uint32_t pid = 0;
    std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat; 0 = unknown

    bool operator==(const ProcessId&) const = default;
};

// Machine, PID namespace, process id and start ticks: names a process of a job.
using ProcessKey = std::tuple<std::string, std::string, std::uint32_t, std::uint64_t>;

// JobPlace::rank_source of a rank that NCCL named.
inline constexpr const char* kRankFromNccl = "nccl";

// Numbers are -1 and texts empty if they are unknown.
struct JobPlace {
    int rank = -1;  // -1 also for a helper process
    int local_rank = -1;
    int world_size = -1;
    int generation = -1;      // restarts of the job before this start
    std::string rank_source;  // an environment variable, or kRankFromNccl
    // A helper process, such as a worker of a data loader, has the rank of an ancestor in its
    // environment.
    int inherited_rank = -1;
    std::string host;
    std::string boot_id;        // of the machine's kernel since it started; containers share it
    std::string pid_namespace;  // each container has its own; process ids are those of a namespace
    std::string job_id;         // of the scheduler or launcher

    ProcessId process;
    std::vector<ProcessId> ancestors;        // the parent first
    std::array<std::uint64_t, 2> session{};  // the same in all files of a recording; 0 = unknown
    std::uint32_t part = 0;                  // of a recording in parts; 0 = no parts, or a copy
    std::string copy_reason;                 // why this copy was made; empty = no copy

    // Names the machine: by its boot or, if that is not known, by the name of the host.
    [[nodiscard]] std::string machine() const { return boot_id.empty() ? "host " + host : boot_id; }

    // Whether both processes were on one machine, so that their times are those of one clock.
    [[nodiscard]] bool same_machine(const JobPlace& other) const {
        return boot_id.empty() || other.boot_id.empty() ? host == other.host
                                                        : boot_id == other.boot_id;
    }

    // Of a process on this one's machine and in its container.
    [[nodiscard]] ProcessKey key_of(const ProcessId& one) const {
        return {machine(), pid_namespace, one.pid, one.start_ticks};
    }

    // Whether a process id means the same process to both, as far as is known.
    [[nodiscard]] bool same_process_ids(const JobPlace& other) const {
        return same_machine(other) && (pid_namespace.empty() || other.pid_namespace.empty() ||
                                       pid_namespace == other.pid_namespace);
    }
};

}  // namespace fragtrace::analyzer
