// One device of the page: its columns as elements of the document, the rest as JSON.
#pragma once

#include "analyzer/report/page_data.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace fragtrace::analyzer {

// Appends the device's packs to `html` and returns its part of the header. The data is consistent
// (render_page has checked it).
nlohmann::json write_device(const PageDevice& device,
                            std::size_t index,
                            std::size_t block_budget,
                            std::string& html);

}  // namespace fragtrace::analyzer
