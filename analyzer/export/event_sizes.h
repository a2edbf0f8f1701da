// The address and the sizes of an event, whatever columns its kind keeps them in.
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>
#include <optional>

namespace fragtrace::analyzer {

struct EventSizes {
    std::optional<std::uint64_t> address;    // or a handle
    std::optional<std::uint64_t> bytes;      // of the block or memory that the event is about
    std::optional<std::uint64_t> requested;  // block_alloc, block_out_of_memory
};

// Values that are unknown, or that the kind does not have, are missing.
EventSizes sizes_of(const Event& event);

}  // namespace fragtrace::analyzer
