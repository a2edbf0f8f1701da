// The name of an ending in JSON.
#pragma once

#include "analyzer/model/timeline.h"

namespace fragtrace::analyzer {

// For example "normal". See `ended` in docs/schema/common.json.
const char* ending_name(Ending ending);

}  // namespace fragtrace::analyzer
