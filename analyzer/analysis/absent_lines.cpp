#include "analyzer/analysis/absent_lines.h"

#include <algorithm>

namespace fragtrace::analyzer {

std::vector<Room> rooms_without_lines(const Analysis& analysis,
                                      const Diagnosis& diagnosis,
                                      const LineNumbers& lines) {
    const std::vector<HeapBlock>& blocks = diagnosis.heap.blocks;
    std::vector<std::uint32_t> line(blocks.size(), kNoLine);
    std::map<OriginId, std::uint32_t> by_origin;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (blocks[i].state == BlockState::kFree || blocks[i].allocated_by == kNoEvent) {
            continue;
        }
        const OriginId origin = analysis.timeline.events[blocks[i].allocated_by].origin;
        const auto [known, fresh] = by_origin.try_emplace(origin, kNoLine);
        if (fresh) {
            const auto found = lines.find(analysis.symbols->describe(origin));
            known->second = found == lines.end() ? kNoLine : found->second;
        }
        line[i] = known->second;
    }
    std::uint32_t count = 0;
    for (const auto& [label, number] : lines) {
        count = std::max(count, number + 1);
    }
    return room_without(diagnosis.heap, line, count, diagnosis.wanted);
}

}  // namespace fragtrace::analyzer
