#include "analyzer/verdict/culprits.h"

#include <algorithm>
#include <limits>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kUnitBytes = std::uint64_t{2} << 20;  // segments are multiples of 2 MiB
constexpr std::uint64_t kMaxWork = 400'000'000;               // table cells
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

bool is_live(const HeapBlock& block) {
    return block.state != BlockState::kFree;
}

// The window of neighbouring blocks with the fewest live bytes that is large enough.
CheapestSet cheapest_window(const HeapSnapshot& heap, std::uint64_t needed_bytes) {
    CheapestSet best;
    std::uint64_t best_cost = kNever;
    for (const HeapSegment& segment : heap.segments) {
        if (segment.size_bytes < needed_bytes || !segment.may_release) {
            continue;
        }
        const std::uint32_t end = segment.first_block + segment.block_count;
        std::uint32_t last = segment.first_block;
        std::uint64_t window = 0;
        std::uint64_t live = 0;
        for (std::uint32_t first = segment.first_block; first < end; ++first) {
            while (last < end && window < needed_bytes) {
                window += heap.blocks[last].size_bytes;
                live += is_live(heap.blocks[last]) ? heap.blocks[last].size_bytes : 0;
                ++last;
            }
            if (window < needed_bytes) {
                break;
            }
            // A window that begins with a free block's neighbour is the same set of live blocks.
            const bool same_as_next = !is_live(heap.blocks[first]) &&
                                      window - heap.blocks[first].size_bytes >= needed_bytes;
            if (live < best_cost) {
                best_cost = live;
                best.kind = CheapestSet::Kind::kWindow;
                best.bytes_to_free = live;
                best.equally_cheap_sets = 1;
                best.blocks.clear();
                for (std::uint32_t i = first; i < last; ++i) {
                    if (is_live(heap.blocks[i])) {
                        best.blocks.push_back(i);
                    }
                }
            } else if (live == best_cost && !same_as_next) {
                best.equally_cheap_sets += 1;
            }
            window -= heap.blocks[first].size_bytes;
            live -= is_live(heap.blocks[first]) ? heap.blocks[first].size_bytes : 0;
        }
    }
    return best;
}

struct Item {
    std::uint32_t segment;
    std::uint64_t units;  // gained
    std::uint64_t cost;   // live bytes
};

std::vector<Item> releasable_items(const HeapSnapshot& heap) {
    std::vector<Item> items;
    for (std::uint32_t s = 0; s < heap.segments.size(); ++s) {
        const HeapSegment& segment = heap.segments[s];
        if (!segment.may_release || segment.expandable) {
            continue;
        }
        std::uint64_t live = 0;
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            live += is_live(block) ? block.size_bytes : 0;
        }
        items.push_back({s, segment.size_bytes / kUnitBytes, live});
    }
    return items;
}

void add_segment(const HeapSnapshot& heap, std::uint32_t s, CheapestSet* set) {
    const HeapSegment& segment = heap.segments[s];
    ++set->segments;
    for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count;
         ++i) {
        if (is_live(heap.blocks[i])) {
            set->blocks.push_back(i);
            set->bytes_to_free += heap.blocks[i].size_bytes;
        }
    }
}

CheapestSet greedy_cover(const HeapSnapshot& heap, std::vector<Item> items, std::uint64_t need) {
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
        return a.cost * b.units < b.cost * a.units;
    });
    CheapestSet set;
    set.kind = CheapestSet::Kind::kSegments;
    set.approximate = true;
    for (const Item& item : items) {
        if (need == 0) {
            break;
        }
        add_segment(heap, item.segment, &set);
        need -= std::min(need, item.units);
    }
    return need == 0 ? set : CheapestSet{};
}

// Minimum-cost cover: cost[u] = fewest live bytes of any set of segments that gains >= u units,
// sets[u] = how many sets reach it. `taken` remembers the choice for the way back.
CheapestSet cheapest_cover(const HeapSnapshot& heap, std::uint64_t missing_bytes) {
    const std::vector<Item> items = releasable_items(heap);
    const std::uint64_t need = (missing_bytes + kUnitBytes - 1) / kUnitBytes;
    std::uint64_t gain = 0;
    for (const Item& item : items) {
        gain += item.units;
    }
    if (need == 0 || gain < need) {
        return {};
    }
    if (need * items.size() > kMaxWork) {
        return greedy_cover(heap, items, need);
    }
    const std::size_t width = static_cast<std::size_t>(need) + 1;
    std::vector<std::uint64_t> cost(width, kNever);
    std::vector<double> sets(width, 0);
    std::vector<bool> taken(width * items.size(), false);
    cost[0] = 0;
    sets[0] = 1;
    for (std::size_t i = 0; i < items.size(); ++i) {
        for (std::size_t u = width - 1; u > 0; --u) {
            const std::size_t rest = u > items[i].units ? u - items[i].units : 0;
            if (cost[rest] == kNever) {
                continue;
            }
            const std::uint64_t with = cost[rest] + items[i].cost;
            if (with < cost[u]) {
                cost[u] = with;
                sets[u] = sets[rest];
                taken[i * width + u] = true;
            } else if (with == cost[u]) {
                sets[u] += sets[rest];
            }
        }
    }
    CheapestSet best;
    best.kind = CheapestSet::Kind::kSegments;
    best.equally_cheap_sets = sets[need];
    std::size_t u = static_cast<std::size_t>(need);
    for (std::size_t i = items.size(); i-- > 0 && u > 0;) {
        if (taken[i * width + u]) {
            add_segment(heap, items[i].segment, &best);
            u = u > items[i].units ? u - items[i].units : 0;
        }
    }
    std::sort(best.blocks.begin(), best.blocks.end());
    return best;
}

}  // namespace

CheapestSet find_cheapest_set(const HeapSnapshot& heap,
                              std::uint64_t rounded_bytes,
                              std::uint64_t asked_bytes) {
    const CheapestSet window = cheapest_window(heap, rounded_bytes);
    const std::uint64_t missing =
        asked_bytes > heap.device_free_bytes ? asked_bytes - heap.device_free_bytes : 0;
    const CheapestSet cover = cheapest_cover(heap, missing);
    if (window.kind == CheapestSet::Kind::kNone) {
        return cover;
    }
    if (cover.kind == CheapestSet::Kind::kNone || window.bytes_to_free <= cover.bytes_to_free) {
        return window;
    }
    return cover;
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
