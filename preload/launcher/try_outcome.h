// The prediction of a what-if row and the outcome of the run, side by side.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fragtrace::launcher {

struct OutcomeLine {
    const char* what;
    std::string recorded;
    std::string predicted;
    std::string outcome;
    std::optional<bool> held;  // nothing: nothing certain was predicted
};

// `recorded` and `outcome` are devices of two reports, `row` is a what-if row of the first report.
std::vector<OutcomeLine> outcome_lines(const nlohmann::json& recorded,
                                       const nlohmann::json& row,
                                       const nlohmann::json& outcome);

// Keeps the outcome beside the recorded trace, in TRACE.tried.json, for its report. `note` says why
// the prediction does not apply; empty: it applies. Returns false if the file cannot be written.
bool keep_outcome(const std::string& trace,
                  const nlohmann::json& report,
                  const nlohmann::json& row,
                  const std::vector<OutcomeLine>& lines,
                  const std::string& note);

// Prints a table to the standard error.
void print_lines(const std::vector<OutcomeLine>& lines);

}  // namespace fragtrace::launcher
