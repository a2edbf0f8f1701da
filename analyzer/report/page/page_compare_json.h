// The comparison of two runs in the page's header.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <nlohmann/json.hpp>

namespace fragtrace::analyzer {

nlohmann::json comparison_json(const PageComparison& comparison);

}  // namespace fragtrace::analyzer
