// Records which addresses are occupied at which times, for placement in any order and problems of
// any size.
//
// A tree over time. Each node stores which ranges are occupied during its whole span, and which at
// any time in its span. Ranges that touch are merged. A query visits the few nodes that make up a
// buffer's lifetime, and the nodes above them. It does not visit each buffer that is live at the
// same time. Not thread-safe.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

class Occupancy {
  public:
    // `buffers` is the expected number of buffers. More buffers are slower, but still correct.
    explicit Occupancy(std::uint32_t moments, std::size_t buffers = 0);

    // Lowest offset at which `size_bytes` are free at all of these moments.
    [[nodiscard]] std::uint64_t lowest(Moments moments, std::uint64_t size_bytes);

    void take(Moments moments, std::uint64_t offset_bytes, std::uint64_t size_bytes);

    // Number of ranges visited or moved so far. Proportional to the run time, and the same on every
    // machine.
    [[nodiscard]] std::uint64_t work() const { return work_; }

  private:
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };

    using Ranges = std::vector<Range>;  // ascending; ranges do not touch

    struct Node {
        Ranges throughout;
        Ranges anywhere;
    };

    // The part of a buffer in the bucket (span of a leaf) in which it begins or ends.
    struct Part {
        Moments moments;
        Range range;
    };

    using Parts = std::vector<Part>;  // ascending by begin; parts may overlap

    // The moments of a node. The root's span may extend far beyond the last moment.
    struct Span {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;

        [[nodiscard]] bool within(Moments moments) const {
            return moments.begin <= begin && end <= moments.end;
        }
    };

    // Large, so that the tree has few levels: each node that was not used recently costs a cache
    // miss.
    static constexpr std::uint32_t kChildren = 16;

    // Calls visit(child, span of the child) for the children that share moments with `moments`.
    template <typename Visit>
    static void for_children(std::size_t node, Span span, Moments moments, Visit visit) {
        const std::uint64_t width = (span.end - span.begin) / kChildren;  // a power of two
        const std::uint64_t first = moments.begin <= span.begin
                                        ? 0
                                        : (moments.begin - span.begin) >> std::countr_zero(width);
        std::uint64_t begin = span.begin + first * width;
        for (std::uint64_t i = first; i < kChildren && begin < moments.end; ++i, begin += width) {
            visit(node * kChildren + 1 + i, Span{begin, begin + width});
        }
    }

    [[nodiscard]] Span root() const { return {0, leaves_ * bucket_moments_}; }

    template <typename Item>
    struct Cursor {
        const Item* at;
        const Item* end;
    };

    // Both return true if a part of the range was not occupied before.
    bool add(Ranges* ranges, Range range);
    bool take(std::size_t node, Span span, Moments moments, const Range& range);
    void look_at(const Ranges& ranges);
    void look_up(std::size_t node, Span span, Moments moments);

    std::uint64_t bucket_moments_ = 0;  // the span of a leaf; a power of two
    std::uint64_t leaves_ = 1;          // a power of kChildren
    std::size_t first_leaf_ = 0;        // index in nodes_
    std::vector<Node> nodes_;   // node i is the parent of kChildren nodes; the leaves come last
    std::vector<Parts> parts_;  // per leaf
    std::vector<Cursor<Range>> cursors_;  // of the current query
    std::vector<Cursor<Part>> in_parts_;  // of the leaves where the buffer begins and ends
    std::uint64_t work_ = 0;
};

}  // namespace fragtrace::analyzer
