#include "launcher/try_outcome.h"

#include "launcher/refusal.h"
#include "launcher/report.h"
#include "launcher/sizes_text.h"
#include "launcher/try_report.h"

#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

using Json = nlohmann::json;

std::string count_or_none(std::uint64_t count) {
    return count == 0 ? "none" : std::to_string(count);
}

// Writes a file completely or not at all.
bool replace_file(const std::string& path, const std::string& content) {
    const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
    const int file =
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0) {
        return false;
    }
    const auto written = write(file, content.data(), content.size());
    const bool whole = written == static_cast<ssize_t>(content.size());
    if (close(file) == 0 && whole && rename(temporary.c_str(), path.c_str()) == 0) {
        return true;
    }
    unlink(temporary.c_str());
    return false;
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

bool keep_outcome(const std::string& trace,
                  const Json& report,
                  const Json& row,
                  const std::vector<OutcomeLine>& lines,
                  const std::string& note) {
    constexpr std::size_t kMostTrials = 16;
    const std::string path = trace + ".tried.json";
    const std::uint64_t start_unix_ns = number(report["source"], "start_unix_ns");
    std::error_code failed;
    Json kept;
    if (std::filesystem::is_regular_file(path, failed)) {
        std::ifstream from(path);
        kept = Json::parse(from, nullptr, false);
    }
    if (!kept.is_object() || number(kept, "start_unix_ns") != start_unix_ns ||
        !kept["trials"].is_array()) {
        kept = {{"schema", 1}, {"start_unix_ns", start_unix_ns}, {"trials", Json::array()}};
    }
    Json trial = {{"device", row["device"]},
                  {"change", text(row, "name")},
                  {"note", note},
                  {"lines", Json::array()}};
    for (const OutcomeLine& line : lines) {
        trial["lines"].push_back({{"what", line.what},
                                  {"predicted", line.predicted},
                                  {"outcome", line.outcome},
                                  {"held", line.held ? Json(*line.held) : Json()}});
    }
    Json& trials = kept["trials"];
    for (std::size_t i = trials.size(); i-- > 0;) {
        const bool same = trials[i].is_object() && trials[i]["change"] == trial["change"] &&
                          trials[i]["device"] == trial["device"];
        if (same) {
            trials.erase(i);
        }
    }
    trials.push_back(std::move(trial));
    while (trials.size() > kMostTrials) {
        trials.erase(std::size_t{0});
    }
    return replace_file(path, kept.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
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
