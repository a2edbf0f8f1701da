// fragtrace top --serve: the figures of recorded processes for monitoring systems.
#pragma once

#include "analyzer/support/result.h"

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

// Answers http://WHERE/metrics in Prometheus' text format until the process is ended, or until
// process `pid` records no more (0: all processes of this user, also later ones). Reads their new
// events every `interval_s`. First says on standard error what it shows to whom.
Status serve_figures(const std::string& where, std::uint32_t pid, double interval_s);

}  // namespace fragtrace::analyzer
