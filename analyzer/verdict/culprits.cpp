#include "analyzer/verdict/culprits.h"

#include "analyzer/verdict/cover.h"
#include "analyzer/verdict/given_back.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

bool is_live(const HeapBlock& block) {
    return block.state != BlockState::kFree;
}

// A window of neighbouring blocks; its live ones are those of blocks [first, last).
struct Window {
    std::uint32_t segment = 0;
    std::uint32_t first = 0;  // live, as is last - 1, unless there are none
    std::uint32_t last = 0;

    bool operator==(const Window&) const = default;
};

// The windows of one segment that are large enough and have the fewest live bytes of all so far:
// one for each set of live blocks.
void add_windows(const HeapSnapshot& heap,
                 std::uint32_t s,
                 std::uint64_t needed_bytes,
                 std::uint64_t* fewest_bytes,
                 std::vector<Window>* windows) {
    const HeapSegment& segment = heap.segments[s];
    const std::uint32_t end = segment.first_block + segment.block_count;
    std::uint32_t last = segment.first_block;
    std::uint64_t size = 0;
    std::uint64_t live = 0;
    for (std::uint32_t first = segment.first_block; first < end; ++first) {
        while (last < end && size < needed_bytes) {
            size += heap.blocks[last].size_bytes;
            live += is_live(heap.blocks[last]) ? heap.blocks[last].size_bytes : 0;
            ++last;
        }
        if (size < needed_bytes) {
            return;
        }
        if (live <= *fewest_bytes) {
            Window window{s, first, last};
            while (window.first < window.last && !is_live(heap.blocks[window.first])) {
                ++window.first;
            }
            while (window.last > window.first && !is_live(heap.blocks[window.last - 1])) {
                --window.last;
            }
            if (live == 0) {
                window = {};  // nothing has to go: the same set wherever it is
            }
            if (live < *fewest_bytes) {
                windows->clear();
                *fewest_bytes = live;
            }
            // Windows of the same live blocks follow each other.
            if (windows->empty() || windows->back() != window) {
                windows->push_back(window);
            }
        }
        size -= heap.blocks[first].size_bytes;
        live -= is_live(heap.blocks[first]) ? heap.blocks[first].size_bytes : 0;
    }
}

bool may_lie_in(const HeapSegment& segment, const WindowPlace& place) {
    const bool same_pool =
        place.private_pool ? segment.private_pool == *place.private_pool : segment.may_release;
    const bool same_stream =
        place.stream == kNoStream || segment.stream == kNoStream || segment.stream == place.stream;
    const bool same_class = place.size_class == SizeClass::kNone ||
                            segment.size_class == SizeClass::kNone ||
                            segment.size_class == place.size_class;
    return same_pool && same_stream && same_class;
}

// Windows whose blocks, freed, also give the driver back what is missing: covers as well.
std::uint64_t count_covers(const HeapSnapshot& heap,
                           const std::vector<Window>& windows,
                           std::uint64_t missing_bytes) {
    std::uint64_t given_back = 0;
    for (const HeapSegment& segment : heap.segments) {
        given_back += GivenBack(heap, segment).bytes();
    }
    std::uint64_t count = 0;
    for (auto window = windows.begin(); window != windows.end();) {
        const std::uint32_t in = window->segment;
        const GivenBack segment(heap, heap.segments[in]);
        for (; window != windows.end() && window->segment == in; ++window) {
            const std::uint64_t with =
                given_back - segment.bytes() + segment.bytes_without(window->first, window->last);
            count += with >= missing_bytes ? 1 : 0;
        }
    }
    return count;
}

}  // namespace

CheapestSet find_cheapest_set(const HeapSnapshot& heap,
                              std::uint64_t rounded_bytes,
                              std::uint64_t asked_bytes,
                              const WindowPlace& place) {
    std::vector<Window> windows;
    std::uint64_t window_bytes = kNever;
    for (std::uint32_t i = 0; i < heap.segments.size(); ++i) {
        if (heap.segments[i].size_bytes >= rounded_bytes && may_lie_in(heap.segments[i], place)) {
            add_windows(heap, i, rounded_bytes, &window_bytes, &windows);
        }
    }
    const std::uint64_t missing =
        asked_bytes > heap.device_free_bytes ? asked_bytes - heap.device_free_bytes : 0;
    Cover cover = cheapest_cover(heap, missing);
    if (cover.found && (windows.empty() || cover.bytes_to_free < window_bytes)) {
        return {.kind = cover.pages != 0 ? CheapestSet::Kind::kPages : CheapestSet::Kind::kSegments,
                .bytes_to_free = cover.bytes_to_free,
                .segments = cover.segments,
                .pages = cover.pages,
                .equally_cheap_sets = cover.equal_sets,
                .approximate = cover.approximate,
                .blocks = std::move(cover.blocks)};
    }
    CheapestSet set;
    if (windows.empty()) {
        return set;
    }
    set.kind = CheapestSet::Kind::kWindow;
    set.bytes_to_free = window_bytes;
    set.approximate = cover.approximate;
    set.equally_cheap_sets = static_cast<double>(windows.size());
    if (cover.found && cover.bytes_to_free == window_bytes && !cover.approximate) {
        set.equally_cheap_sets +=
            cover.equal_sets - static_cast<double>(count_covers(heap, windows, missing));
    }
    for (std::uint32_t i = windows.front().first; i < windows.front().last; ++i) {
        if (is_live(heap.blocks[i])) {
            set.blocks.push_back(i);
        }
    }
    return set;
}

std::vector<std::uint64_t> held_open_bytes(const HeapSnapshot& heap) {
    std::vector<std::uint64_t> held(heap.blocks.size(), 0);
    for (const HeapSegment& segment : heap.segments) {
        std::uint64_t live = 0;
        std::uint64_t last = 0;
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            if (is_live(block)) {
                live += block.size_bytes;
                last = segment.first_block + i;
            }
        }
        if (live == 0) {
            continue;
        }
        const std::uint64_t free_bytes = segment.size_bytes - live;
        std::uint64_t shared_out = 0;
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            if (is_live(block)) {
                const auto share = static_cast<std::uint64_t>(
                    static_cast<double>(free_bytes) * static_cast<double>(block.size_bytes) /
                    static_cast<double>(live));
                held[segment.first_block + i] = std::min(share, free_bytes - shared_out);
                shared_out += held[segment.first_block + i];
            }
        }
        held[last] += free_bytes - shared_out;  // the parts add up to the whole
    }
    return held;
}

}  // namespace fragtrace::analyzer
