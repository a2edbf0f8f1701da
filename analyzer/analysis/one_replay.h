// One replay of a device under chosen settings, with the reasons of its failures.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <optional>
#include <string>

namespace fragtrace::analyzer {

// What to replay. Without a choice, everything is as recorded.
struct ReplayChoice {
    unsigned device = 0;  // ordinal
    std::string pool;     // name of a simulated pool; empty = as recorded
    std::string config;   // settings of the pool, if `config_given`
    bool config_given = false;

    // Takes "NAME" or "NAME:SETTINGS". Settings that were given before win.
    void choose_pool(const std::string& text);
    // Errors are kUsage: nothing was allocated on the device.
    [[nodiscard]] Result<const DeviceAnalysis*> find_device(const Analysis& analysis) const;
    [[nodiscard]] Candidate candidate(const DeviceAnalysis& recorded,
                                      std::optional<std::uint64_t> capacity_bytes) const;
};

struct OneReplay {
    ReplaySetup setup;  // the pool and its device, in their state at the end
    WhatIfRow row;
    std::vector<Diagnosis> diagnoses;  // the first ones of the failed requests and retries
};

// Errors are kUsage: the pool or its settings are not known.
Result<OneReplay> replay_once(const DeviceAnalysis& device, const Candidate& candidate);

}  // namespace fragtrace::analyzer
