// Writes a snapshot, reads it back and analyses it.
#pragma once

#include "analyzer/analysis/analyze.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/text/text.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <memory>
#include <string>

namespace fragtrace::testing {

// Also computes the rows of the report.
inline std::unique_ptr<analyzer::Analysis> report_of(const SnapshotWriter& writer) {
    TemporaryFolder folder;
    const std::string path = folder.file("x.pickle");
    std::ofstream(path, std::ios::binary) << writer.pickle();
    auto analysis = analyzer::analyze(
        path, {.settings = true, .pools = true, .capacities = true, .remedies = true});
    if (!analysis.ok()) {
        FAIL(analysis.error().message);
    }
    return std::move(analysis).value();
}

inline std::string text_of(const analyzer::Analysis& analysis) {
    return analyzer::report_text(analysis, analyzer::Terminal(1, analyzer::ColorChoice::kNever));
}

}  // namespace fragtrace::testing
