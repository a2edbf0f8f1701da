#include "analyzer/analysis/verdict/cover.h"

#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kMaxCells = 64'000'000;  // one byte each, for tracing the solution back
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// A whole segment or one page: the smallest part that returns to the driver. Stages of one range
// follow each other.
struct Stage {
    std::uint64_t gain_bytes = 0;
    // Live blocks that begin in this stage, ascending. The one that crosses into the next page
    // comes last.
    std::uint32_t first = 0;
    std::uint32_t count = 0;       // number of these blocks
    std::uint64_t inner_cost = 0;  // bytes of those that also end here
    // Bytes of the block that begins here and ends in a later page.
    std::uint64_t crossing_cost = 0;
    bool enters = false;   // a live block enters from the page before
    bool passes = false;   // that block continues into the next page
    bool crosses = false;  // a block that begins here continues into the next page
    bool page = false;
};

void add_whole_segment(const HeapSnapshot& heap,
                       const HeapSegment& segment,
                       std::vector<Stage>* stages,
                       std::vector<std::uint32_t>* live) {
    Stage stage{.gain_bytes = segment.size_bytes,
                .first = static_cast<std::uint32_t>(live->size())};
    for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count;
         ++i) {
        if (heap.blocks[i].in_use()) {
            live->push_back(i);
            stage.inner_cost += heap.blocks[i].size_bytes;
        }
    }
    stage.count = static_cast<std::uint32_t>(live->size()) - stage.first;
    stages->push_back(stage);
}

// Pages count from the start of the reservation. A partial page at either end is never returned.
void add_pages(const HeapSnapshot& heap,
               const HeapSegment& segment,
               std::vector<Stage>* stages,
               std::vector<std::uint32_t>* live) {
    const std::uint64_t page = segment.page_bytes;
    const std::uint64_t base = segment.reservation != 0 ? segment.reservation : segment.address;
    const std::uint64_t end = segment.address + segment.size_bytes;
    const std::uint64_t end_of_pages = end - std::min(end, page);
    std::uint64_t at = base + round_up(segment.address - base, page);
    std::uint32_t block = segment.first_block;
    const std::uint32_t last = segment.first_block + segment.block_count;
    // A block that begins in the partial page is freed with the first full page that it reaches.
    while (block < last && heap.blocks[block].address + heap.blocks[block].size_bytes <= at) {
        ++block;
    }
    bool enters = false;
    bool enters_far = false;
    for (; at <= end_of_pages; at += page) {
        const bool last_page = end - at < 2 * page;
        Stage stage{.gain_bytes = page,
                    .first = static_cast<std::uint32_t>(live->size()),
                    .enters = enters,
                    .passes = enters && enters_far && !last_page,
                    .page = true};
        bool next_far = false;
        for (; block < last && heap.blocks[block].address < at + page; ++block) {
            const HeapBlock& here = heap.blocks[block];
            if (!here.in_use()) {
                continue;
            }
            const std::uint64_t block_end = here.address + here.size_bytes;
            live->push_back(block);
            if (block_end > at + page && !last_page) {
                stage.crosses = true;
                stage.crossing_cost = here.size_bytes;
                next_far = block_end > at + 2 * page;
            } else {
                stage.inner_cost += here.size_bytes;
            }
        }
        stage.count = static_cast<std::uint32_t>(live->size()) - stage.first;
        stages->push_back(stage);
        if (stage.crosses) {
            enters = true;
            enters_far = next_far;
        } else if (stage.passes) {
            const HeapBlock& passing = heap.blocks[live->back()];
            enters_far = passing.address + passing.size_bytes > at + 2 * page;
        } else {
            enters = false;
        }
    }
}

// No card has more than a few terabytes, and no page is smaller than 2 MiB.
bool has_plausible_pages(const HeapSnapshot& heap) {
    constexpr std::uint64_t kMostPages = 1 << 23;
    std::uint64_t pages = 0;
    for (const HeapSegment& segment : heap.segments) {
        if (segment.expandable && segment.page_bytes != 0) {
            pages += segment.size_bytes / segment.page_bytes;
        }
        const bool outside = segment.reservation > segment.address;
        if (pages > kMostPages || (segment.expandable && segment.reservation != 0 && outside)) {
            return false;
        }
    }
    return true;
}

std::vector<Stage> stages_of(const HeapSnapshot& heap, std::vector<std::uint32_t>* live) {
    std::vector<Stage> stages;
    for (const HeapSegment& segment : heap.segments) {
        if (!segment.may_release) {
            continue;
        }
        if (segment.expandable && segment.page_bytes != 0) {
            add_pages(heap, segment, &stages, live);
        } else if (!segment.expandable) {
            add_whole_segment(heap, segment, &stages, live);
        }
    }
    return stages;
}

// One choice for a stage: free the block that enters, gain the stage, free the block that leaves.
struct Way {
    bool in_freed = false;
    bool gained = false;
    bool out_freed = false;
    std::uint64_t cost = 0;
};

// The choices that free distinct sets of blocks and that can be cheapest.
struct Ways {
    std::array<Way, 5> ways;
    std::size_t count = 0;

    explicit Ways(const Stage& stage) {
        for (const bool in_freed : {false, true}) {
            if (in_freed && !stage.enters) {
                continue;  // no block enters, so none can be freed
            }
            for (const bool gained : {false, true}) {
                add(stage, in_freed, gained);
            }
        }
    }

  private:
    void add(const Stage& stage, bool in_freed, bool gained) {
        const bool blocked = stage.enters && !in_freed;
        if (gained) {
            if (!blocked) {
                const bool out = stage.passes ? in_freed : stage.crosses;
                ways[count++] = {in_freed, true, out, stage.inner_cost + stage.crossing_cost};
            }
            return;
        }
        if (stage.passes) {
            if (!in_freed) {
                ways[count++] = {in_freed, false, in_freed, 0};
            }
            return;  // a page within one freed block is always gained
        }
        // Without gaining the stage, at least one block must stay; otherwise it would be gained.
        const bool inner_stays = stage.inner_cost != 0;
        if (blocked || inner_stays || stage.crosses) {
            ways[count++] = {in_freed, false, false, 0};
        }
        if (stage.crosses && (blocked || inner_stays)) {
            ways[count++] = {in_freed, false, true, stage.crossing_cost};
        }
    }
};

void take_blocks(const Stage& stage,
                 const Way& way,
                 const std::vector<std::uint32_t>& live,
                 Cover* cover) {
    const std::uint32_t inner = stage.count - (stage.crosses ? 1 : 0);
    if (way.gained) {
        for (std::uint32_t i = 0; i < inner; ++i) {
            cover->blocks.push_back(live[stage.first + i]);
        }
        cover->segments += stage.page ? 0 : 1;
        cover->pages += stage.page ? 1 : 0;
    }
    if (stage.crosses && way.out_freed) {
        cover->blocks.push_back(live[stage.first + inner]);
    }
}

void finish(const HeapSnapshot& heap, Cover* cover) {
    std::sort(cover->blocks.begin(), cover->blocks.end());
    cover->blocks.erase(std::unique(cover->blocks.begin(), cover->blocks.end()),
                        cover->blocks.end());
    for (const std::uint32_t block : cover->blocks) {
        cover->bytes_to_free += heap.blocks[block].size_bytes;
    }
    cover->found = true;
}

// Takes segments and pages with the fewest live bytes per byte gained first. Blocks of a taken page
// then cost nothing for other pages that they reach.
Cover greedy(const HeapSnapshot& heap, std::uint64_t missing_bytes) {
    struct Unit {
        std::uint32_t segment;
        std::uint64_t begin;
        std::uint64_t bytes;
        std::uint64_t cost;
        std::uint32_t first;  // the blocks in it are [first, last)
        std::uint32_t last;
        bool page;
    };

    std::vector<Unit> units;
    for (std::uint32_t s = 0; s < heap.segments.size(); ++s) {
        const HeapSegment& segment = heap.segments[s];
        if (!segment.may_release || (segment.expandable && segment.page_bytes == 0)) {
            continue;
        }
        const std::uint64_t step = segment.expandable ? segment.page_bytes : segment.size_bytes;
        const std::uint64_t base =
            segment.expandable && segment.reservation != 0 ? segment.reservation : segment.address;
        std::uint64_t at = base + round_up(segment.address - base, step);
        std::uint32_t first = segment.first_block;
        const std::uint32_t end = segment.first_block + segment.block_count;
        const std::uint64_t last_begin = segment.address + segment.size_bytes -
                                         std::min(segment.address + segment.size_bytes, step);
        for (; at <= last_begin; at += step) {
            while (first < end &&
                   heap.blocks[first].address + heap.blocks[first].size_bytes <= at) {
                ++first;
            }
            Unit unit{s, at, step, 0, first, first, segment.expandable};
            for (; unit.last < end && heap.blocks[unit.last].address < at + step; ++unit.last) {
                const HeapBlock& block = heap.blocks[unit.last];
                unit.cost += block.in_use() ? block.size_bytes : 0;
            }
            units.push_back(unit);
        }
    }
    std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) {
        return static_cast<double>(a.cost) * static_cast<double>(b.bytes) <
               static_cast<double>(b.cost) * static_cast<double>(a.bytes);
    });
    Cover cover;
    cover.approximate = true;
    std::uint64_t gained = 0;
    for (const Unit& unit : units) {
        if (gained >= missing_bytes) {
            break;
        }
        gained += unit.bytes;
        cover.segments += unit.page ? 0 : 1;
        cover.pages += unit.page ? 1 : 0;
        for (std::uint32_t i = unit.first; i < unit.last; ++i) {
            if (heap.blocks[i].in_use()) {
                cover.blocks.push_back(i);
            }
        }
    }
    if (gained < missing_bytes) {
        return {};
    }
    finish(heap, &cover);
    return cover;
}

// cost[out][u] is the fewest live bytes that gain at least u units. `out` is 1 if the block that
// leaves the stage is freed. sets[out][u] is the number of sets of blocks with this cost.
class Knapsack {
  public:
    Knapsack(const std::vector<Stage>& stages, std::uint64_t unit_bytes, std::uint64_t need)
        : stages_(stages), unit_bytes_(unit_bytes), width_(static_cast<std::size_t>(need) + 1) {
        chosen_.resize(stages.size() * width_);
        for (std::size_t out : {0, 1}) {
            cost_[out].assign(width_, kNever);
            sets_[out].assign(width_, 0);
        }
        cost_[0][0] = 0;
        sets_[0][0] = 1;
        for (std::size_t i = 0; i < stages.size(); ++i) {
            add(i);
        }
    }

    [[nodiscard]] bool solved() const { return cost_[0][width_ - 1] != kNever; }

    [[nodiscard]] double equal_sets() const { return sets_[0][width_ - 1]; }

    void walk_back(const std::vector<std::uint32_t>& live, Cover* cover) const {
        std::size_t u = width_ - 1;
        std::size_t out = 0;
        for (std::size_t i = stages_.size(); i-- > 0;) {
            const unsigned code = chosen_[i * width_ + u] >> (4 * out) & 15;
            const Way way = Ways(stages_[i]).ways[code];
            take_blocks(stages_[i], way, live, cover);
            u = before(stages_[i], way, u);
            out = way.in_freed ? 1 : 0;
        }
    }

  private:
    [[nodiscard]] std::size_t before(const Stage& stage, const Way& way, std::size_t u) const {
        const std::uint64_t gain = way.gained ? stage.gain_bytes / unit_bytes_ : 0;
        return u > gain ? u - static_cast<std::size_t>(gain) : 0;
    }

    void add(std::size_t i) {
        const Ways ways(stages_[i]);
        for (std::size_t u = width_; u-- > 0;) {
            std::array<std::uint64_t, 2> cost = {kNever, kNever};
            std::array<double, 2> sets = {0, 0};
            std::array<unsigned, 2> code = {0, 0};
            for (unsigned w = 0; w < ways.count; ++w) {
                const Way& way = ways.ways[w];
                const std::size_t rest = before(stages_[i], way, u);
                const std::uint64_t so_far = cost_[way.in_freed ? 1 : 0][rest];
                if (so_far == kNever) {
                    continue;
                }
                const std::size_t out = way.out_freed ? 1 : 0;
                const std::uint64_t with = so_far + way.cost;
                if (with < cost[out]) {
                    cost[out] = with;
                    sets[out] = sets_[way.in_freed ? 1 : 0][rest];
                    code[out] = w;
                } else if (with == cost[out]) {
                    sets[out] += sets_[way.in_freed ? 1 : 0][rest];
                }
            }
            // Sums are visited from large to small, so smaller sums still have the values of
            // earlier stages.
            for (const std::size_t out : {0, 1}) {
                cost_[out][u] = cost[out];
                sets_[out][u] = sets[out];
            }
            chosen_[i * width_ + u] = static_cast<std::uint8_t>(code[0] | code[1] << 4);
        }
    }

    const std::vector<Stage>& stages_;
    std::uint64_t unit_bytes_;
    std::size_t width_;
    std::array<std::vector<std::uint64_t>, 2> cost_;
    std::array<std::vector<double>, 2> sets_;
    std::vector<std::uint8_t>
        chosen_;  // choice per stage and sum: out = 0 in the low bits, out = 1 shifted
};

}  // namespace

Cover cheapest_cover(const HeapSnapshot& heap, std::uint64_t missing_bytes, CoverBudget* budget) {
    if (!has_plausible_pages(heap)) {
        return {};
    }
    std::vector<std::uint32_t> live;
    const std::vector<Stage> stages = stages_of(heap, &live);
    std::uint64_t unit_bytes = 0;
    std::uint64_t gain_bytes = 0;
    for (const Stage& stage : stages) {
        unit_bytes = std::gcd(unit_bytes, stage.gain_bytes);
        gain_bytes += stage.gain_bytes;
    }
    if (missing_bytes == 0 || gain_bytes < missing_bytes) {
        return {};
    }
    const std::uint64_t need = (missing_bytes + unit_bytes - 1) / unit_bytes;
    const std::uint64_t most = budget != nullptr ? std::min(kMaxCells, budget->cells) : kMaxCells;
    if (need >= most || (need + 1) * stages.size() > most) {
        return greedy(heap, missing_bytes);
    }
    if (budget != nullptr) {
        budget->cells -= (need + 1) * stages.size();
    }
    const Knapsack knapsack(stages, unit_bytes, need);
    if (!knapsack.solved()) {
        return {};
    }
    Cover cover;
    cover.equal_sets = knapsack.equal_sets();
    knapsack.walk_back(live, &cover);
    finish(heap, &cover);
    return cover;
}

}  // namespace fragtrace::analyzer
