#include "analyzer/analysis/analysis.h"

#include "analyzer/analysis/absent_lines.h"
#include "analyzer/analysis/whatif/ranking.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

namespace fragtrace::analyzer {

namespace {

// If the card's size is not known, it had room at least for what the run reserved. After a retry or
// an out-of-memory even that is no proof, since another replay may call the driver at other times.
std::uint64_t known_capacity_bytes(const DeviceAnalysis& device) {
    return device.capacity_known ? ~std::uint64_t{0}
           : device.recorded.retries != 0 || device.recorded.ooms != 0
               ? 0
               : device.recorded.peak_reserved;
}

}  // namespace

SweepContext sweep_context(const DeviceAnalysis& device) {
    return {.fidelity_exact = device.fidelity && device.fidelity->exact(),
            .recorded_config = device.config,
            .recorded_capacity_bytes = device.capacity_bytes,
            .driver_page_bytes = device.assumptions.driver_page_bytes,
            .assumed = device.script.requested_unknown != 0 || device.script.stream_unknown != 0,
            .pending_assumed = device.assumptions.pending != PendingRule::kRecorded &&
                               !device.script.pending.empty(),
            .known_capacity_bytes = known_capacity_bytes(device),
            .adopted_bytes = adopted_bytes(device.script),
            .beside_pool = device.beside_pool,
            .rules = device.script.rules};
}

namespace {

constexpr std::size_t kMostLines = 64;  // lines whose absence is examined
constexpr std::size_t kMostSideHolders = 8;

}  // namespace

RuleUse use_of_rule(const Analysis& analysis, std::size_t rule) {
    RuleUse all;
    for (const DeviceAnalysis& device : analysis.devices) {
        if (rule < device.held.rule_uses.size()) {
            all.matched = all.matched || device.held.rule_uses[rule].matched;
            all.requests += device.held.rule_uses[rule].requests;
        }
    }
    return all;
}

const Diagnosis* reported_oom(const DeviceAnalysis& device) {
    const Diagnosis* first = nullptr;
    for (const Diagnosis& diagnosis : device.diagnoses) {
        if (diagnosis.trouble.outcome != Outcome::kRetryOk) {
            if (diagnosis.trouble.event == device.final_oom) {
                return &diagnosis;
            }
            first = first == nullptr ? &diagnosis : first;
        }
    }
    return first;
}

std::vector<const WhatIfRow*> ranked_rows(const DeviceAnalysis& device) {
    std::vector<const WhatIfRow*> rows;
    for (const auto* list : {&device.settings, &device.remedies}) {
        for (const WhatIfRow& row : *list) {
            rows.push_back(&row);
        }
    }
    if (const WhatIfRow* recorded = recorded_row(device.settings)) {
        std::stable_sort(
            rows.begin(), rows.end(), [recorded](const WhatIfRow* a, const WhatIfRow* b) {
                return ranks_before(*a, *b, *recorded);
            });
    }
    return rows;
}

std::uint64_t compared_reserved_bytes(const DeviceAnalysis& device) {
    const WhatIfRow* recorded = recorded_row(device.settings);
    return recorded == nullptr ? device.recorded.peak_reserved
                               : recorded->result.statistics.reserved.peak;
}

namespace {

// Names the age by powers of ten.
std::string age_class(std::uint64_t age_ns) {
    std::uint64_t from = 1'000'000;
    if (age_ns < from) {
        return "less than " + format_duration(from);
    }
    while (age_ns / 10 >= from) {
        from *= 10;
    }
    return fmt::format("{} to {}", format_duration(from), format_duration(10 * from));
}

}  // namespace

Outlived outlived_of(const Analysis& analysis,
                     const CulpritGroup& group,
                     const Diagnosis& diagnosis) {
    return analysis.phases
               ? outlived_phase(
                     analysis.timeline, *analysis.phases, group.oldest, diagnosis.trouble.event)
               : Outlived{};
}

std::vector<CulpritGroup> group_culprits(const Analysis& analysis,
                                         const Diagnosis& diagnosis,
                                         bool only_cheapest,
                                         CulpritKey key,
                                         StreamId stream) {
    const Timeline& timeline = analysis.timeline;
    const std::uint64_t now_ns = timeline.events[diagnosis.trouble.event].time_ns;
    const BlockLabels labels(timeline, diagnosis.heap, analysis.symbols.get());
    const auto key_of = [&](const Event& born, const HeapBlock& block) {
        switch (key) {
            case CulpritKey::kLine:
                break;
            case CulpritKey::kPhase:
                return analysis.phases ? analysis.phases->name_of(block.allocated_by)
                                       : std::string();
            case CulpritKey::kAge:
                return age_class(now_ns > born.time_ns ? now_ns - born.time_ns : 0);
        }
        return labels.label_of(labels.key_of(block));
    };
    std::vector<bool> wanted(diagnosis.heap.blocks.size(), !only_cheapest);
    if (only_cheapest) {
        for (const std::uint32_t block : diagnosis.cheapest.blocks) {
            wanted[block] = true;
        }
    }
    // Group by label: stacks of one line differ in threads and native frames.
    std::map<std::string, CulpritGroup> groups;
    for (std::size_t i = 0; i < diagnosis.heap.blocks.size(); ++i) {
        const HeapBlock& block = diagnosis.heap.blocks[i];
        const bool counts = wanted[i] && block.state != BlockState::kFree &&
                            block.allocated_by != kNoEvent &&
                            (stream == kNoStream || block.stream == stream) &&
                            (only_cheapest || diagnosis.held_open[i] != 0);
        if (!counts) {
            continue;
        }
        const Event& born = timeline.events[block.allocated_by];
        const std::string label = key_of(born, block);
        auto [found, fresh] = groups.try_emplace(label, CulpritGroup{});
        CulpritGroup& group = found->second;
        if (fresh) {
            group.held.label = label;
            group.held.origin = born.origin;
            group.oldest_ns = born.time_ns;
            group.oldest = block.allocated_by;
        }
        group.held_open_bytes += diagnosis.held_open[i];
        group.held.add(block.size_bytes, 1);
        if (born.time_ns < group.oldest_ns) {
            group.oldest_ns = born.time_ns;
            group.oldest = block.allocated_by;
        }
        // The block keeps at least its own size from being released, so its segment is at least
        // half empty.
        if (only_cheapest || diagnosis.held_open[i] >= block.size_bytes) {
            group.blocking.push_back(block.allocated_by);
        }
    }
    std::vector<CulpritGroup> rows;
    for (auto& [label, group] : groups) {
        rows.push_back(std::move(group));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const CulpritGroup& a, const CulpritGroup& b) {
        return a.held_open_bytes > b.held_open_bytes;
    });
    return rows;
}

std::vector<std::pair<std::string, std::uint64_t>> side_holders(const Analysis& analysis,
                                                                const SideMemory& memory) {
    std::map<std::string, std::uint64_t> by_line;
    for (const auto& [origin, bytes] : memory.holders) {
        by_line[analysis.symbols->describe(origin)] += bytes;
    }
    std::vector<std::pair<std::string, std::uint64_t>> lines(by_line.begin(), by_line.end());
    std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
        return a.second > b.second;
    });
    lines.resize(std::min(lines.size(), kMostSideHolders));
    return lines;
}

std::optional<CulpritGroup> most_blocking(const Analysis& analysis, const Diagnosis& diagnosis) {
    std::vector<CulpritGroup> groups = group_culprits(analysis, diagnosis, false);
    if (groups.empty()) {
        return std::nullopt;
    }
    if (diagnosis.wanted.driver_bytes == 0) {
        return std::move(groups.front());  // a peak: no request failed there
    }
    groups.resize(std::min(groups.size(), kMostLines));
    LineNumbers lines;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        lines.emplace(groups[i].held.label, static_cast<std::uint32_t>(i));
    }
    const std::vector<Room> rooms = rooms_without_lines(analysis, diagnosis, lines);
    std::size_t best = 0;
    for (std::size_t i = 1; i < groups.size() && !rooms[best].serves(diagnosis.wanted); ++i) {
        if (rooms[i].serves(diagnosis.wanted) || rooms[i].bytes() > rooms[best].bytes()) {
            best = i;
        }
    }
    groups[best].too_little = !rooms[best].serves(diagnosis.wanted);
    groups[best].others_block_more = best != 0 && !groups[best].too_little;
    return std::move(groups[best]);
}

}  // namespace fragtrace::analyzer
