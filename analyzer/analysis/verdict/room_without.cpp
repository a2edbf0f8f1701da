#include "analyzer/analysis/verdict/room_without.h"

#include "analyzer/analysis/verdict/releasable_bytes.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

std::uint64_t longest_free_run(const HeapSnapshot& heap, const HeapSegment& segment) {
    std::uint64_t longest = 0;
    std::uint64_t run = 0;
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
        const HeapBlock& block = heap.blocks[segment.first_block + i];
        run = block.state == BlockState::kFree ? run + block.size_bytes : 0;
        longest = std::max(longest, run);
    }
    return longest;
}

}  // namespace

std::vector<Room> room_without(const HeapSnapshot& heap,
                               const std::vector<std::uint32_t>& line,
                               std::size_t lines,
                               const RoomWanted& wanted) {
    std::vector<Room> rooms(lines, {.driver_bytes = heap.device_free_bytes});
    HeapSnapshot without = heap;
    std::vector<std::uint32_t> here;
    for (const HeapSegment& segment : heap.segments) {
        const auto first = line.begin() + segment.first_block;
        here.assign(first, first + segment.block_count);
        std::sort(here.begin(), here.end());
        here.erase(std::unique(here.begin(), here.end()), here.end());
        if (!here.empty() && here.back() == kNoLine) {
            here.pop_back();
        }
        const bool may_lie = wanted.window_bytes != kNoWindow && may_lie_in(segment, wanted.place);
        const std::uint64_t as_is = here.empty() ? 0 : ReleasableBytes(heap, segment).bytes();
        for (const std::uint32_t one : here) {
            for (std::uint32_t i = 0; i < segment.block_count; ++i) {
                const std::uint32_t block = segment.first_block + i;
                without.blocks[block].state =
                    line[block] == one ? BlockState::kFree : heap.blocks[block].state;
            }
            Room& room = rooms[one];
            room.driver_bytes += ReleasableBytes(without, segment).bytes() - as_is;
            if (may_lie) {
                room.longest_run_bytes =
                    std::max(room.longest_run_bytes, longest_free_run(without, segment));
            }
        }
    }
    return rooms;
}

}  // namespace fragtrace::analyzer
