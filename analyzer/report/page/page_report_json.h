// The parts of the page's header that repeat the report: cards, advice, growth, holes, lines.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

nlohmann::json known_json(std::uint64_t value);  // null for kPageUnknown
nlohmann::json lines_json(const std::vector<ReportLine>& lines);
nlohmann::json card_json(const PageCard& card);
nlohmann::json growth_json(const PageDevice& device);
nlohmann::json advice_json(const PageDevice& device);
nlohmann::json holes_json(const PageDevice& device);
nlohmann::json phase_totals_json(const PageProcess& process);

}  // namespace fragtrace::analyzer
