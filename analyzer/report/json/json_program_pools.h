// The JSON of the program's own pools. Keys: docs/schema/report.json.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <nlohmann/json_fwd.hpp>

namespace fragtrace::analyzer {

nlohmann::ordered_json program_pools_json(const Analysis& analysis);

}  // namespace fragtrace::analyzer
