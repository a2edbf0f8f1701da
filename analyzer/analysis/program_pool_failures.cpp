#include "analyzer/analysis/program_pool_failures.h"

#include "analyzer/analysis/holders/holders.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// The blocks of one line, and the largest range that would be free without them.
struct Line {
    HeldBy held;
    std::uint64_t largest_bytes = 0;
    EventIndex oldest = kNoEvent;  // the allocation of its oldest block
    // The range that is being extended: free ranges and blocks of this line alone.
    DeviceAddress begin = 0;
    DeviceAddress end = 0;  // of the last block in it
};

std::vector<Line> lines_of(const Timeline& timeline,
                           const HeapSnapshot& heap,
                           Symbolizer* symbols) {
    const BlockLabels labels(timeline, heap, symbols);
    std::map<std::pair<OriginId, std::uint64_t>, std::size_t> by_key;
    std::map<std::string, std::size_t> by_label;
    std::vector<Line> lines;
    for (const HeapSegment& segment : heap.segments) {
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock* const block = &heap.blocks[segment.first_block + i];
            if (block->state == BlockState::kFree) {
                continue;
            }
            const auto key = labels.key_of(*block);
            auto at = by_key.find(key);
            if (at == by_key.end()) {
                const std::string label = labels.label_of(key);
                const auto line = by_label.try_emplace(label, lines.size());
                if (line.second) {
                    lines.emplace_back().held.label = label;
                }
                at = by_key.emplace(key, line.first->second).first;
            }
            Line& line = lines[at->second];
            line.held.add(block->size_bytes, 1);
            line.oldest = std::min(line.oldest, block->allocated_by);
            const bool free_before = i > 0 && block[-1].state == BlockState::kFree;
            const bool free_after =
                i + 1 < segment.block_count && block[1].state == BlockState::kFree;
            const DeviceAddress begin = block->address - (free_before ? block[-1].size_bytes : 0);
            const bool extends = i > 0 && line.end == begin && line.end > segment.address;
            line.begin = extends ? line.begin : begin;
            line.end = block->address + block->size_bytes;
            line.largest_bytes = std::max(
                line.largest_bytes, line.end - line.begin + (free_after ? block[1].size_bytes : 0));
        }
    }
    return lines;
}

void find_culprit(const Timeline& timeline,
                  const HeapSnapshot& heap,
                  Symbolizer* symbols,
                  ProgramPoolMoment* moment) {
    for (Line& line : lines_of(timeline, heap, symbols)) {
        const bool fewer =
            moment->without_culprit_bytes == 0 || line.held.bytes < moment->culprit.bytes;
        if (line.largest_bytes >= moment->requested_bytes && fewer) {
            moment->culprit = std::move(line.held);
            moment->without_culprit_bytes = line.largest_bytes;
            moment->oldest = line.oldest;
        }
    }
    if (moment->without_culprit_bytes == 0) {
        for (const HeapBlock& block : heap.blocks) {
            moment->oldest = std::min(moment->oldest, block.allocated_by);
        }
    }
}

}  // namespace

void explain_failure(const Timeline& timeline,
                     const ProgramPool& pool,
                     const HeapSnapshot& heap,
                     bool refused,
                     Symbolizer* symbols,
                     ProgramPoolMoment* moment) {
    if (pool.memory == PoolMemory::kUnknown || moment->requested_bytes == kUnknown64) {
        moment->failure = PoolFailure::kUnknown;
        return;
    }
    if (moment->reserved_bytes == 0) {
        moment->failure = PoolFailure::kNoBlockYet;
        return;
    }
    if (pool.shares_memory) {
        moment->failure = PoolFailure::kShared;
        return;
    }
    const std::uint64_t room =
        pool.is_limited() && !refused && pool.limit_bytes > moment->reserved_bytes
            ? pool.limit_bytes - moment->reserved_bytes
            : 0;
    const std::uint64_t requested = moment->requested_bytes;
    if (requested > room && requested - room > moment->free_bytes()) {
        moment->failure = PoolFailure::kTooLittle;
    } else if (moment->largest_free_bytes < requested && room < requested) {
        moment->failure = PoolFailure::kFragmented;
        find_culprit(timeline, heap, symbols, moment);
    } else {
        moment->failure = PoolFailure::kRefused;
    }
}

}  // namespace fragtrace::analyzer
