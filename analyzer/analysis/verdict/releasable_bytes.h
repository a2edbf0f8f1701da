// The bytes that a segment can return to the driver: the whole segment, or whole pages of an
// expandable one, if no live block lies in them.
#pragma once

#include "analyzer/model/heap_snapshot.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Answers the question for any range of a segment's blocks in logarithmic time. Keeps no reference
// to its arguments.
class ReleasableBytes {
  public:
    ReleasableBytes(const HeapSnapshot& heap, const HeapSegment& segment);

    // Releasable bytes now.
    [[nodiscard]] std::uint64_t bytes() const {
        return whole_before_.empty() ? 0 : whole_before_.back();
    }

    // Releasable bytes if blocks [first, last) were free. These are indices into
    // HeapSnapshot::blocks, within this segment.
    [[nodiscard]] std::uint64_t bytes_without(std::uint32_t first, std::uint32_t last) const;

  private:
    [[nodiscard]] std::uint64_t whole_bytes(std::uint64_t begin, std::uint64_t end) const;
    [[nodiscard]] std::uint64_t gap_begin(std::size_t live) const;
    [[nodiscard]] std::uint64_t gap_end(std::size_t live) const;

    // A live block. Offsets count from the same address as pages do.
    struct Live {
        std::uint32_t block;
        std::uint64_t begin;
        std::uint64_t end;
    };

    std::uint64_t unit_bytes_ = 0;  // smallest part that can be returned: a page or the segment
    std::uint64_t begin_ = 0;       // offsets of the segment
    std::uint64_t end_ = 0;
    std::vector<Live> live_;  // ascending
    // Gaps are the free space before each live block and after the last one. Entry i is the bytes
    // of whole units in the first i gaps. Empty if the segment never returns anything.
    std::vector<std::uint64_t> whole_before_;
};

}  // namespace fragtrace::analyzer
