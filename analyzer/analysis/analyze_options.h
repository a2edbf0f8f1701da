// Options that choose what an analysis computes, and under which assumptions.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/windows.h"
#include "analyzer/replay/assumptions.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace fragtrace::analyzer {

struct AnalyzeOptions {
    std::optional<std::uint64_t> capacity_bytes = {};  // replaces the capacity that the trace gives
    std::string torch_version = {};  // PyTorch release whose rules replace the recorded one's
    ReplayAssumptions assumptions = {};
    bool settings = false;    // replay the settings worth trying
    bool pools = false;       // replay other pools
    bool capacities = false;  // replay the capacities worth trying
    bool remedies = false;    // replay remedies other than settings, and combinations
    // Scripts with more steps (requests and frees) get no remedies, and no plan of the bound
    // `offline`.
    std::size_t remedies_and_plans_up_to = static_cast<std::size_t>(-1);
    bool scans = false;              // scan how small a card may be
    std::uint64_t every_steps = 0;   // one more row calls empty_cache() every so many steps; 0 = 10
    std::size_t max_diagnoses = 16;  // diagnosed OOMs and retries, per device
    bool holders = true;             // compute the map at the peak, and which lines held the memory
    std::shared_ptr<const CategoryRules> categories = {};  // of the user; null = none
    // Take the ring buffer of a dead process into the trace (ReadOptions).
    bool absorb_ring = false;
    // Traces with more events are read in part (windows.h).
    std::uint64_t most_events = kMostEvents;
    // Called as soon as everything is known that needs no replay.
    std::function<void(const Analysis&)> when_recorded = {};
};

// Adds the replays of a report. `whatif` has all replays, also of long traces.
inline void add_report_replays(AnalyzeOptions* options) {
    // The longest trace, in requests and frees, with remedies and plans: the plan of the bound
    // `offline` needs 200 bytes per block.
    constexpr std::size_t kLongestWithRemedies = 2'000'000;
    options->settings = true;
    options->pools = true;
    options->capacities = true;
    options->remedies = true;
    options->remedies_and_plans_up_to = kLongestWithRemedies;
}

}  // namespace fragtrace::analyzer
