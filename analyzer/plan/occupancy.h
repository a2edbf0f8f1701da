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

    template <typename Item>
    struct Cursor {
        const Item* at;
        const Item* end;
    };

    // Both: true, something of it was not in there before.
    bool add(Ranges* ranges, Range range);
    bool take(std::uint32_t node, Moments span, Moments moments, const Range& range);
    void look_at(const Ranges& ranges);
    void look_up(std::uint32_t node, Moments span, Moments moments);

    std::uint32_t bucket_moments_ = 0;    // the span of a leaf
    std::uint32_t leaves_ = 1;            // a power of two
    std::vector<Node> nodes_;             // node i lies above 2i and 2i+1; the leaves come last
    std::vector<Parts> parts_;            // per leaf
    std::vector<Cursor<Range>> cursors_;  // of the buffer that is looked up
    std::vector<Cursor<Part>> in_parts_;  // likewise: of the leaves where it begins and ends
    std::uint64_t work_ = 0;
};

}  // namespace fragtrace::analyzer
