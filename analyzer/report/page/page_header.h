// The page's header: everything except the columns, as one JSON text that is safe inside a <script>
// element.
#pragma once

#include "analyzer/report/page/page_data.h"
#include "analyzer/report/page/page_overview.h"
#include "analyzer/report/page/page_stack_tables.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr int kPageFormatVersion = 16;
inline constexpr std::size_t kMostPageRanks = 10'000;  // in the file

// Title, processes, strings, frames and stacks. The caller appends the devices.
nlohmann::json page_header(const PageData& data, StackTables stacks);
// One device without its packs.
nlohmann::json device_header(const PageDevice& device, const AddressAxis& axis);
// All strings of a value with control and direction characters as escapes (with_escapes()).
nlohmann::json with_escapes_everywhere(nlohmann::json value);
// Converts JSON to text: ASCII only, "<" escaped, invalid UTF-8 replaced.
std::string script_safe(const nlohmann::json& value);
// Escapes the five markup characters for text inside elements.
std::string html_escaped(const std::string& text);

}  // namespace fragtrace::analyzer
