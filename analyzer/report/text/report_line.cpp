#include "analyzer/report/text/report_line.h"

#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {

void add_line(std::vector<ReportLine>* lines, std::string_view label, std::string text) {
    if (!text.empty()) {
        lines->push_back({std::string(label), std::move(text)});
    }
}

std::string printed(const std::vector<ReportLine>& lines) {
    std::string text;
    for (const ReportLine& line : lines) {
        text += fmt::format("  {:<11}{}\n", line.label, line.text);
    }
    return text;
}

}  // namespace fragtrace::analyzer
