// What an analysis is asked for.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/replay/assumptions.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fragtrace::analyzer {

struct AnalyzeOptions {
    std::optional<std::uint64_t> capacity_bytes = {};  // instead of what the trace says
    std::string torch_version = {};  // rules of this release instead of the recorded one's
    ReplayAssumptions assumptions = {};
    bool settings = false;    // replay the settings worth trying
    bool pools = false;       // replay other pools
    bool capacities = false;  // replay the capacities worth trying
    bool remedies = false;    // replay remedies other than settings, and combinations
    // Longer scripts, in requests and frees, get no remedies, and no plan of the bound `offline`.
    std::size_t remedies_and_plans_up_to = static_cast<std::size_t>(-1);
    bool scans = false;              // scan how small a card may be
    std::uint64_t every_steps = 0;   // empty_cache() every so many steps; 0 = 10
    std::size_t max_diagnoses = 16;  // OOMs and retries looked into, per device
    bool holders = true;             // the map at the peak, and who held the memory
    bool absorb_ring = false;        // of a dead process: ReadOptions has it
    // Called once everything is known that needs no replay.
    std::function<void(const Analysis&)> when_recorded = {};
};

}  // namespace fragtrace::analyzer
