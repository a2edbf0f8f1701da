// Which replay of which device is meant: the options of the commands that replay once.
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
    // After parsing: takes name and settings of --pool apart.
    void finish(const CLI::App& app);

    // Errors (kUsage): nothing was allocated on the device.
    [[nodiscard]] Result<const DeviceAnalysis*> find_device(const Analysis& analysis,
                                                            const std::string& trace) const;
    [[nodiscard]] Candidate candidate(const DeviceAnalysis& device,
                                      std::optional<std::uint64_t> capacity_bytes) const;
};

}  // namespace fragtrace::analyzer
