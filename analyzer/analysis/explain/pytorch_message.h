// PyTorch's out-of-memory message, of every release since 0.4, as numbers.
#pragma once

#include "analyzer/analysis/explain/printed_size.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct PytorchMessage {
    struct Process {
        std::uint64_t pid = 0;
        PrintedSize in_use;
    };

    std::string releases;  // that print it so: "1.10 to 2.0"
    std::string platform;  // "CUDA", "HIP"
    std::optional<std::uint64_t> device;

    // All as printed. `tried` is what the driver was asked for, rounded to a segment: 2 MiB for any
    // request up to 1 MiB, 20 MiB for one up to 10 MiB, multiples of 2 MiB above.
    PrintedSize tried;
    std::optional<PrintedSize> capacity;
    std::optional<PrintedSize> device_free;     // of the whole device, after all releases
    std::optional<PrintedSize> allowed;         // the process's own limit
    std::optional<PrintedSize> allocated;       // cached in private pools included since 2.2
    std::optional<PrintedSize> private_cached;  // cached in private pools (CUDA graphs)
    std::optional<PrintedSize> reserved;        // until 2.0
    std::optional<PrintedSize> unallocated;     // reserved - allocated; "cached" until 1.3
    std::optional<PrintedSize> own_process;     // NVML's figure for the process itself
    std::vector<Process> processes;             // NVML's, others or, in containers, this one too
    bool expandable_segments = false;           // the message says that they are on
    std::optional<PrintedSize> expandable_reserve;  // the request exceeds it
};

// `text` begins at "out of memory. Tried to allocate" or a little before it, lines joined. nullopt
// where it names no size.
std::optional<PytorchMessage> parse_pytorch_message(std::string_view text);

}  // namespace fragtrace::analyzer
