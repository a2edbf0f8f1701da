// Memory that one line of the program allocated.
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

struct HeldBy {
    // The line, as Symbolizer::describe writes it. A size if no block of the map has a stack.
    std::string label;
    OriginId origin = 0;  // origin of one of the blocks
    // Signed, so that the difference of two entries is an entry, too.
    std::int64_t bytes = 0;
    std::int64_t blocks = 0;

    // Unsigned arithmetic wraps: the blocks of a made-up trace may add up to more than 2^63 bytes.
    void add(std::uint64_t more_bytes, std::uint64_t more_blocks) {
        bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(bytes) + more_bytes);
        blocks = static_cast<std::int64_t>(static_cast<std::uint64_t>(blocks) + more_blocks);
    }
};

}  // namespace fragtrace::analyzer
