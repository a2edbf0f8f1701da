// Texts about what a report assumes because a snapshot does not say it, and about content that no
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

// A snapshot after reading. All referenced objects must outlive it.
struct SnapshotReading {
    const Snapshot& snapshot;
    const std::string& release;  // the release whose rules apply
    const PytorchConfig& config;
    const PytorchRules& rules;
    const std::vector<SnapshotStart>& starts;      // per device
    const std::deque<SnapshotHistory>& histories;  // per device, at their ends
    std::uint64_t entries = 0;                     // in all histories
};

// Returns one line per assumption.
std::vector<std::string> snapshot_assumptions(const SnapshotReading& reading);

// Returns one line for each kind of content that no report shows, with its count and its name in
// the file.
std::vector<std::string> left_out_lines(const Snapshot& snapshot);

}  // namespace fragtrace::analyzer
