// A line of the report with its label. The terminal prints it and the page shows it, so both have
// the same words and figures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct ReportLine {
    std::string label;  // at most 10 characters; empty: the line above goes on
    std::string text;   // one line
};

// Adds nothing if `text` is empty.
void add_line(std::vector<ReportLine>* lines, std::string_view label, std::string text);

// As the terminal prints them: "  label      text", one line each.
std::string printed(const std::vector<ReportLine>& lines);

}  // namespace fragtrace::analyzer
