// Which addresses are taken when, for placement in any order of problems of any size.
//
// A tree over time: a node knows what is taken throughout its span and what is taken anywhere in
// it, as ranges that are joined where they touch. A buffer looks at the few nodes that its lifetime
// is made of and at those above them, instead of at each buffer that lives together with it. Not
// thread-safe.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

class Occupancy {
  public:
    // For about so many buffers; with more it is slower, not wrong.
    explicit Occupancy(std::uint32_t moments, std::size_t buffers = 0);

    // The lowest offset at which `size_bytes` are free at all of these moments.
    [[nodiscard]] std::uint64_t lowest(Moments moments, std::uint64_t size_bytes);

    void take(Moments moments, std::uint64_t offset_bytes, std::uint64_t size_bytes);

    // Ranges that were looked at or moved so far: in proportion to the time it took, and the same
    // on every machine.
    [[nodiscard]] std::uint64_t work() const { return work_; }

  private:
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };

    using Ranges = std::vector<Range>;  // ascending; they do not touch

    struct Node {
        Ranges throughout;
        Ranges anywhere;
    };

    // A buffer that begins or ends within a bucket, the span of a leaf.
    struct Part {
        Moments moments;
        Range range;
    };

    using Parts = std::vector<Part>;  // ascending by begin; they may overlap

    // The moments of a node: those of the root may reach far beyond the last moment.
    struct Span {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;

        [[nodiscard]] bool within(Moments moments) const {
            return moments.begin <= begin && end <= moments.end;
        }
    };

    // Few levels: a node that was not looked at for a while costs a cache miss.
    static constexpr std::uint32_t kChildren = 16;

    // Calls visit(child, span of the child) for the children that share moments with `moments`.
    template <typename Visit>
    static void for_children(std::size_t node, Span span, Moments moments, Visit visit) {
        const std::uint64_t width = (span.end - span.begin) / kChildren;
        const std::uint64_t first =
            moments.begin <= span.begin ? 0 : (moments.begin - span.begin) / width;
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

    // Both: true, something of it was not in there before.
    bool add(Ranges* ranges, Range range);
    bool take(std::size_t node, Span span, Moments moments, const Range& range);
    void look_at(const Ranges& ranges);
    void look_up(std::size_t node, Span span, Moments moments);

    std::uint64_t bucket_moments_ = 0;    // the span of a leaf
    std::uint64_t leaves_ = 1;            // a power of kChildren
    std::size_t first_leaf_ = 0;          // as a node
    std::vector<Node> nodes_;             // node i lies above kChildren nodes; the leaves come last
    std::vector<Parts> parts_;            // per leaf
    std::vector<Cursor<Range>> cursors_;  // of the buffer that is looked up
    std::vector<Cursor<Part>> in_parts_;  // likewise: of the leaves where it begins and ends
    std::uint64_t work_ = 0;
};

}  // namespace fragtrace::analyzer
