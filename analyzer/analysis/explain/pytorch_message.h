// The numbers of PyTorch's out-of-memory message, as every release since 0.4 prints it.
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

    std::string releases;  // releases that print this form: "1.10 to 2.0"
    std::string platform;  // "CUDA", "HIP"
    std::optional<std::uint64_t> device;

    // All sizes are as printed. `tried` is the size that was requested from the driver, rounded to
    // a segment: 2 MiB for any request up to 1 MiB, 20 MiB for one up to 10 MiB, multiples of 2 MiB
    // above.
    PrintedSize tried;
    std::optional<PrintedSize> capacity;
    // Free on the whole device, after the pool returned all it could.
    std::optional<PrintedSize> device_free;
    std::optional<PrintedSize> allowed;    // the process's own limit
    std::optional<PrintedSize> allocated;  // since 2.2 this includes memory cached in private pools
    std::optional<PrintedSize> private_cached;  // cached in private pools (CUDA graphs)
    std::optional<PrintedSize> reserved;        // printed up to 2.0
    std::optional<PrintedSize> unallocated;     // reserved - allocated; up to 1.3 "cached"
    std::optional<PrintedSize> own_process;     // NVML's figure for this process
    std::vector<Process> processes;    // NVML's figures: others or, in containers, this process too
    bool expandable_segments = false;  // the message says that they are on
    // The address space reserved for a segment, which the request exceeds.
    std::optional<PrintedSize> expandable_reserve;
};

// `text` has its lines joined and starts at "out of memory. Tried to allocate" or slightly before
// it. nullopt if it has no size.
std::optional<PytorchMessage> parse_pytorch_message(std::string_view text);

}  // namespace fragtrace::analyzer
