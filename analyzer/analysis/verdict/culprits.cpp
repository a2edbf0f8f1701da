#include "analyzer/analysis/verdict/culprits.h"

#include "analyzer/analysis/verdict/cover.h"
#include "analyzer/analysis/verdict/releasable_bytes.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// A window of neighbouring blocks. Its live blocks are the live ones among [first, last).
struct Window {
    std::uint32_t segment = 0;
    std::uint32_t first = 0;  // live, as is last - 1, unless the window has no live block
    std::uint32_t last = 0;

    bool operator==(const Window&) const = default;
};

// Finds the windows of one segment that are large enough and have the fewest live bytes so far.
// Windows with the same live blocks count once.
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
            live += heap.blocks[last].in_use() ? heap.blocks[last].size_bytes : 0;
            ++last;
        }
        if (size < needed_bytes) {
            return;
        }
        if (live <= *fewest_bytes) {
            Window window{s, first, last};
            while (window.first < window.last && !heap.blocks[window.first].in_use()) {
                ++window.first;
            }
            while (window.last > window.first && !heap.blocks[window.last - 1].in_use()) {
                --window.last;
            }
            if (live == 0) {
                window = {};  // nothing must be freed, so all such windows are the same set
            }
            if (live < *fewest_bytes) {
                windows->clear();
                *fewest_bytes = live;
            }
            // Windows with the same live blocks are adjacent in the list.
            if (windows->empty() || windows->back() != window) {
                windows->push_back(window);
            }
        }
        size -= heap.blocks[first].size_bytes;
        live -= heap.blocks[first].in_use() ? heap.blocks[first].size_bytes : 0;
    }
}

// Counts windows that are covers as well: freeing their blocks also returns the missing bytes to
// the driver.
std::uint64_t count_covers(const HeapSnapshot& heap,
                           const std::vector<Window>& windows,
                           std::uint64_t missing_bytes) {
    std::uint64_t given_back = 0;
    for (const HeapSegment& segment : heap.segments) {
        given_back += ReleasableBytes(heap, segment).bytes();
    }
    std::uint64_t count = 0;
    for (auto window = windows.begin(); window != windows.end();) {
        const std::uint32_t in = window->segment;
        const ReleasableBytes segment(heap, heap.segments[in]);
        for (; window != windows.end() && window->segment == in; ++window) {
            const std::uint64_t with =
                given_back - segment.bytes() + segment.bytes_without(window->first, window->last);
            count += with >= missing_bytes ? 1 : 0;
        }
    }
    return count;
}

}  // namespace

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

CheapestSet find_cheapest_set(const HeapSnapshot& heap,
                              std::uint64_t rounded_bytes,
                              std::uint64_t asked_bytes,
                              const WindowPlace& place,
                              CoverBudget* budget) {
    std::vector<Window> windows;
    std::uint64_t window_bytes = std::numeric_limits<std::uint64_t>::max();
    for (std::uint32_t i = 0; i < heap.segments.size(); ++i) {
        if (heap.segments[i].size_bytes >= rounded_bytes && may_lie_in(heap.segments[i], place)) {
            add_windows(heap, i, rounded_bytes, &window_bytes, &windows);
        }
    }
    const std::uint64_t missing =
        asked_bytes > heap.device_free_bytes ? asked_bytes - heap.device_free_bytes : 0;
    Cover cover = cheapest_cover(heap, missing, budget);
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
        if (heap.blocks[i].in_use()) {
            set.blocks.push_back(i);
        }
    }
    return set;
}

namespace {

std::uint64_t end_of(const HeapBlock& block) {
    return block.address + block.size_bytes;
}

// Divides the free bytes of [begin, end), which returns to the driver as a whole, among its live
// blocks. Each gets a share in proportion to its bytes in the range. `first` is the first block
// that reaches into the range.
void share_out(const HeapSnapshot& heap,
               std::uint32_t first,
               std::uint32_t last,
               DeviceAddress begin,
               DeviceAddress end,
               std::vector<std::uint64_t>* held) {
    const auto bytes_within = [begin, end](const HeapBlock& block) {
        return std::min(end, end_of(block)) - std::max(begin, block.address);
    };
    std::uint64_t live = 0;
    std::uint32_t last_live = first;
    for (std::uint32_t i = first; i < last && heap.blocks[i].address < end; ++i) {
        if (heap.blocks[i].in_use()) {
            live += bytes_within(heap.blocks[i]);
            last_live = i;
        }
    }
    if (live == 0) {
        return;
    }
    const std::uint64_t free_bytes = end - begin - live;
    std::uint64_t shared_out = 0;
    for (std::uint32_t i = first; i <= last_live; ++i) {
        if (heap.blocks[i].in_use()) {
            const auto share = static_cast<std::uint64_t>(
                static_cast<double>(free_bytes) *
                static_cast<double>(bytes_within(heap.blocks[i])) / static_cast<double>(live));
            const std::uint64_t part = std::min(share, free_bytes - shared_out);
            (*held)[i] += part;
            shared_out += part;
        }
    }
    (*held)[last_live] += free_bytes - shared_out;  // rounding remainder, so that the shares add up
}

// Divides free bytes page by page. Pages within a single block have no free bytes.
void share_out_pages(const HeapSnapshot& heap,
                     const HeapSegment& segment,
                     std::vector<std::uint64_t>* held) {
    const DeviceAddress base = segment.reservation != 0 ? segment.reservation : segment.address;
    const DeviceAddress end = segment.address + segment.size_bytes;
    const std::uint32_t last = segment.first_block + segment.block_count;
    const auto page_begin = [&segment, base](DeviceAddress address) {
        return base + (address - base) / segment.page_bytes * segment.page_bytes;
    };
    std::uint32_t block = segment.first_block;
    for (DeviceAddress at = page_begin(segment.address); at < end;) {
        const DeviceAddress begin = std::max(at, segment.address);
        const DeviceAddress page_end =
            end - at > segment.page_bytes ? at + segment.page_bytes : end;
        while (block < last && end_of(heap.blocks[block]) <= begin) {
            ++block;
        }
        if (block == last) {
            return;
        }
        if (end_of(heap.blocks[block]) >= page_end) {
            at = std::max(page_begin(end_of(heap.blocks[block])), page_end);
            continue;
        }
        share_out(heap, block, last, begin, page_end, held);
        at = page_end;
    }
}

}  // namespace

std::vector<std::uint64_t> held_open_bytes(const HeapSnapshot& heap) {
    std::vector<std::uint64_t> held(heap.blocks.size(), 0);
    for (const HeapSegment& segment : heap.segments) {
        if (segment.expandable && segment.page_bytes != 0) {
            share_out_pages(heap, segment, &held);
        } else {
            share_out(heap,
                      segment.first_block,
                      segment.first_block + segment.block_count,
                      segment.address,
                      segment.address + segment.size_bytes,
                      &held);
        }
    }
    return held;
}

}  // namespace fragtrace::analyzer
