// Memory held by one line of the program.
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

struct HeldBy {
    std::string label;    // the line, as Symbolizer::describe has it; a size where none has a stack
    OriginId origin = 0;  // of one of the blocks
    // Signed, so that a difference of two is one as well.
    std::int64_t bytes = 0;
    std::int64_t blocks = 0;

    // Wraps: blocks of a made-up trace may add up to more than 2^63 bytes.
    void add(std::uint64_t more_bytes, std::uint64_t more_blocks) {
        bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(bytes) + more_bytes);
        blocks = static_cast<std::int64_t>(static_cast<std::uint64_t>(blocks) + more_blocks);
    }
};

}  // namespace fragtrace::analyzer
