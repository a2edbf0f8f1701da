// The bytes that a segment can return to the driver: all of it, or whole pages of an expandable
// segment, where everything in them is free.
#pragma once

#include "analyzer/model/heap_snapshot.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Answers for any neighbouring blocks of one segment, each in logarithmic time. Refers to nothing.
class ReleasableBytes {
  public:
    ReleasableBytes(const HeapSnapshot& heap, const HeapSegment& segment);

    // As it is.
    [[nodiscard]] std::uint64_t bytes() const {
        return whole_before_.empty() ? 0 : whole_before_.back();
    }

    // With blocks [first, last) free; indices into HeapSnapshot::blocks, of this segment.
    [[nodiscard]] std::uint64_t bytes_without(std::uint32_t first, std::uint32_t last) const;

  private:
    [[nodiscard]] std::uint64_t whole_bytes(std::uint64_t begin, std::uint64_t end) const;
    [[nodiscard]] std::uint64_t gap_begin(std::size_t live) const;
    [[nodiscard]] std::uint64_t gap_end(std::size_t live) const;

    // A live block; from the address that pages count from.
    struct Live {
        std::uint32_t block;
        std::uint64_t begin;
        std::uint64_t end;
    };

    std::uint64_t unit_bytes_ = 0;  // what goes back at once
    std::uint64_t begin_ = 0;       // of the segment
    std::uint64_t end_ = 0;
    std::vector<Live> live_;  // ascending
    // Of the gaps before each live block and behind the last: whole units in those before it. Empty
    // where nothing is ever given back.
    std::vector<std::uint64_t> whole_before_;
};

}  // namespace fragtrace::analyzer
