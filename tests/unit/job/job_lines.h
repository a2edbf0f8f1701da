// The lines of the view of a made-up job.
#pragma once

#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/text/job_text.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer::testing {

inline std::vector<std::string> lines_of(const Job& job) {
    std::vector<std::string> lines(1);
    for (const char byte : job_text(job, view_of(job), Terminal(1, ColorChoice::kNever))) {
        if (byte == '\n') {
            lines.emplace_back();
        } else {
            lines.back() += byte;
        }
    }
    return lines;
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// The first line with this part; empty = there is none.
inline std::string line_with(const Job& job, const std::string& part) {
    for (const std::string& line : lines_of(job)) {
        if (contains(line, part)) {
            return line;
        }
    }
    return "";
}

}  // namespace fragtrace::analyzer::testing
