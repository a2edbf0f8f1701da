#include "launcher/try_outcome.h"

#include "launcher/refusal.h"
#include "launcher/report.h"
#include "launcher/sizes_text.h"
#include "launcher/try_report.h"

#include <cstdint>
#include <fmt/format.h>

namespace fragtrace::launcher {
namespace {

using Json = nlohmann::json;

std::string count_or_none(std::uint64_t count) {
    return count == 0 ? "none" : std::to_string(count);
}

OutcomeLine out_of_memory_line(const Json& recorded, const Json& row, const Json& outcome) {
    const std::uint64_t ooms = number(outcome, "ooms");
    OutcomeLine line = {"out of memory",
                        count_or_none(number(recorded, "ooms")),
                        count_or_none(number(row, "ooms")),
                        count_or_none(ooms),
                        ooms == number(row, "ooms")};
    if (row.value("gets_past", false)) {
        const Json& rest = row["rest_fits"];
        line.predicted = rest.is_null()     ? "none up to this request"
                         : rest.get<bool>() ? "none (rest of the step: estimate)"
                                            : "later in the step (estimate)";
        // What comes after the recorded request was not recorded, and other steps may follow.
        line.held =
            ooms == 0 ? std::optional(!rest.is_boolean() || rest.get<bool>()) : std::nullopt;
    } else if (text(row, "class") == "estimate") {
        line.held = std::nullopt;
    }
    return line;
}

OutcomeLine peak_line(const Json& recorded, const Json& row, const Json& outcome) {
    const std::uint64_t most = number(row, "peak_reserved_bytes");
    const std::uint64_t least = number(row, "least_peak_reserved_bytes");
    const std::uint64_t peak = number(outcome["peak"], "reserved");
    const std::string kind = text(row, "bound_kind");
    OutcomeLine line = {"peak reserved",
                        size_text(number(recorded["peak"], "reserved")),
                        size_text(most),
                        size_text(peak),
                        std::nullopt};
    if (row.value("gets_past", false) || kind == "at_least" || kind == "until_failure") {
        line.predicted = "at least " + size_text(least);
        line.held = peak >= least;
    } else if (kind == "at_most") {
        line.predicted = "at most " + size_text(most);
        line.held = peak <= most;
    } else if (text(row, "class") == "exact") {
        line.held = peak >= least && peak <= most;
        if (!*line.held) {
            line.outcome +=
                fmt::format(" ({} bytes off)",
                            static_cast<std::int64_t>(peak) - static_cast<std::int64_t>(most));
        }
    } else {
        line.predicted += " (estimate)";
    }
    return line;
}

OutcomeLine retry_line(const Json& recorded, const Json& row, const Json& outcome) {
    const std::uint64_t retries = number(outcome, "retries");
    const bool exact = text(row, "class") == "exact" && !row.value("gets_past", false);
    return {"retries",
            count_or_none(number(recorded, "retries")),
            count_or_none(number(row, "retries")) + (exact ? "" : " up to there"),
            count_or_none(retries),
            exact ? std::optional(retries == number(row, "retries")) : std::nullopt};
}

}  // namespace

std::vector<OutcomeLine> outcome_lines(const Json& recorded, const Json& row, const Json& outcome) {
    return {out_of_memory_line(recorded, row, outcome),
            peak_line(recorded, row, outcome),
            retry_line(recorded, row, outcome)};
}

void print_lines(const std::vector<OutcomeLine>& lines) {
    write_error(fmt::format("  {:<15} {:<12} {:<34} {}\n", "", "recorded", "predicted", "outcome"));
    for (const OutcomeLine& line : lines) {
        const std::string verdict = !line.held   ? ""
                                    : *line.held ? "  as predicted"
                                                 : "  NOT as predicted";
        write_error(fmt::format("  {:<15} {:<12} {:<34} {}{}\n",
                                line.what,
                                line.recorded,
                                line.predicted,
                                line.outcome,
                                verdict));
    }
}

}  // namespace fragtrace::launcher
