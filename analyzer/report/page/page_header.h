// The page's small part: everything but the columns, as one JSON text that is safe inside a
// <script> element.
#pragma once

#include "analyzer/report/page/page_data.h"
#include "analyzer/report/page/page_overview.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr int kPageFormatVersion = 8;

// Title, processes, strings, frames and stacks; devices are appended by the caller.
nlohmann::json page_header(const PageData& data);
// One device without its packs.
nlohmann::json device_header(const PageDevice& device, const AddressAxis& axis);
// As text: ASCII only, "<" written as an escape, invalid UTF-8 replaced.
std::string script_safe(const nlohmann::json& value);
// The five characters of markup as references; for text inside elements.
std::string html_escaped(const std::string& text);

}  // namespace fragtrace::analyzer
