#include "analyzer/analysis/verdict/holes.h"

#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// The largest request that rounds to at most `room`. Bisection works because larger requests never
// round to smaller sizes.
std::uint64_t largest_rounding_to(std::uint64_t room,
                                  const PytorchConfig& config,
                                  const PytorchRules& rules) {
    std::uint64_t fits = 0;
    std::uint64_t fails = room + 1;
    while (fits + 1 < fails) {
        const std::uint64_t middle = fits + (fails - fits) / 2;
        (pytorch::round_request(config, rules, middle) <= room ? fits : fails) = middle;
    }
    return fits;
}

std::uint64_t largest_request(std::uint64_t hole_bytes,
                              SizeClass size_class,
                              const PytorchConfig& config,
                              const PytorchRules& rules) {
    const bool small = size_class == SizeClass::kSmall;
    const std::uint64_t room = small ? std::min(hole_bytes, pytorch::kSmallSizeBytes) : hole_bytes;
    const std::uint64_t request = largest_rounding_to(room, config, rules);
    // Requests up to 1 MiB use the small pool.
    const bool large_enough =
        small || pytorch::round_request(config, rules, request) > pytorch::kSmallSizeBytes;
    return large_enough ? request : 0;
}

}  // namespace

std::vector<Hole> holes_of(const HeapSnapshot& heap,
                           const PytorchConfig& config,
                           const PytorchRules& rules) {
    std::vector<Hole> holes;
    for (const HeapSegment& segment : heap.segments) {
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            if (block.state != BlockState::kFree) {
                continue;
            }
            holes.push_back({.address = block.address,
                             .size_bytes = block.size_bytes,
                             .largest_request_bytes = largest_request(
                                 block.size_bytes, segment.size_class, config, rules),
                             .stream = segment.stream,
                             .private_pool = segment.private_pool,
                             .size_class = segment.size_class,
                             .whole_segment = segment.block_count == 1});
        }
    }
    std::sort(holes.begin(), holes.end(), [](const Hole& a, const Hole& b) {
        return a.largest_request_bytes != b.largest_request_bytes
                   ? a.largest_request_bytes > b.largest_request_bytes
                   : a.address < b.address;
    });
    return holes;
}

}  // namespace fragtrace::analyzer
