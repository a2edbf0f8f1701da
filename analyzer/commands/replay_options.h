// Options of the commands that replay once: which device, and with which pool and settings.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/commands/arguments.h"

#include <optional>
#include <string>

namespace fragtrace::analyzer {

struct ReplayOptions {
    std::string pool;    // "NAME" or "NAME:SETTINGS"; empty = as recorded
    std::string config;  // settings, if `config_given`
    bool config_given = false;
    unsigned device = 0;

    void add(CLI::App* app);
    // Call after parsing: splits --pool into name and settings.
    void finish(const CLI::App& app);

    // Errors are kUsage: nothing was allocated on the device.
    [[nodiscard]] Result<const DeviceAnalysis*> find_device(const Analysis& analysis,
                                                            const std::string& trace) const;
    [[nodiscard]] Candidate candidate(const DeviceAnalysis& device,
                                      std::optional<std::uint64_t> capacity_bytes) const;
};

}  // namespace fragtrace::analyzer
