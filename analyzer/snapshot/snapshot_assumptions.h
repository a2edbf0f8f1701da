// What a snapshot does not tell and what is taken instead, in words; and what it holds that no
// report shows.
#pragma once

#include "analyzer/pools/pytorch/pytorch_config.h"
#include "analyzer/pools/pytorch/pytorch_rules.h"
#include "analyzer/snapshot/snapshot.h"
#include "analyzer/snapshot/snapshot_history.h"
#include "analyzer/snapshot/snapshot_start.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// A snapshot as it was read; all must outlive this.
struct SnapshotReading {
    const Snapshot& snapshot;
    const std::string& release;  // whose rules are taken
    const PytorchConfig& config;
    const PytorchRules& rules;
    const std::vector<SnapshotStart>& starts;      // per device
    const std::deque<SnapshotHistory>& histories;  // likewise, told to their ends
    std::uint64_t entries = 0;                     // of all histories
};

// A line each.
std::vector<std::string> snapshot_assumptions(const SnapshotReading& reading);

// What the file holds and nothing shows, counted: a line each, with names as the file has them.
std::vector<std::string> left_out_lines(const Snapshot& snapshot);

}  // namespace fragtrace::analyzer
