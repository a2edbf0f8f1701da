// Options of the commands that replay once: which device, and with which pool and settings.
#pragma once

#include "analyzer/analysis/one_replay.h"
#include "analyzer/commands/arguments.h"

namespace fragtrace::analyzer {

struct ReplayOptions : ReplayChoice {
    void add(CLI::App* app);
    // Call after parsing: splits --pool into name and settings.
    void finish(const CLI::App& app);
};

}  // namespace fragtrace::analyzer
