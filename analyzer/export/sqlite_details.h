// The values of an event that the format `sqlite` has no column for.
#pragma once

#include "analyzer/model/timeline.h"

#include <optional>
#include <string>

namespace fragtrace::analyzer {

// A JSON object; nullopt if the columns have everything.
std::optional<std::string> event_details(const Timeline& timeline, const Event& event);

}  // namespace fragtrace::analyzer
