// fraganalyze check TRACE: checks a run against limits, for continuous integration.
#include "analyzer/analysis/check/checks.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/units.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <functional>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

// The limits as written on the command line.
struct LimitTexts {
    std::string max_reserved;
    std::string max_allocated;
    std::string max_waste;
    std::string baseline;
    std::string tolerance = "1%";
};

Result<Limits> limits_of(const LimitTexts& texts, Limits limits) {
    const auto parse = [](const std::string& text, std::optional<std::uint64_t>* value) -> Status {
        if (text.empty()) {
            return Ok{};
        }
        const auto bytes = parse_card_bytes(text);
        if (!bytes) {
            return bytes.error();
        }
        *value = *bytes;
        return Ok{};
    };
    if (const Status parsed = parse(texts.max_reserved, &limits.max_reserved); !parsed) {
        return parsed.error();
    }
    if (const Status parsed = parse(texts.max_allocated, &limits.max_allocated); !parsed) {
        return parsed.error();
    }
    if (!texts.max_waste.empty()) {
        const auto waste = parse_share_or_bytes(texts.max_waste);
        if (!waste) {
            return waste.error();
        }
        limits.max_waste = *waste;
    }
    const auto tolerance = parse_share_or_bytes(texts.tolerance);
    if (!tolerance) {
        return tolerance.error();
    }
    if (!tolerance->share) {
        return Error{ErrorCode::kUsage,
                     fmt::format("--tolerance {}: give a share, as in 1%", texts.tolerance)};
    }
    limits.tolerance = *tolerance->share;
    if (!texts.baseline.empty()) {
        auto baseline = read_baseline(texts.baseline);
        if (!baseline) {
            return baseline.error();
        }
        limits.baseline = std::move(baseline).value();
    }
    return limits;
}

}  // namespace

Status run_check(int argc, char** argv) {
    CLI::App app(
        "Checks a run against limits, one line per check. The exit status is 1 if a check "
        "fails. A trace that lost events fails, because its figures may be too low. fraganalyze "
        "needs the same host memory for a trace of any length.\n\n"
        "Examples\n"
        "  fraganalyze check train.myhost.4711.ftrace --max-reserved 14GiB --max-waste 10% "
        "--no-oom\n"
        "  fraganalyze summarize good.ftrace --json good.json     # once\n"
        "  fraganalyze check train.myhost.4711.ftrace --baseline good.json --tolerance 2%\n",
        "fraganalyze check");
    std::vector<std::string> traces;
    LimitTexts texts;
    Limits options;
    CommonOptions common;
    app.add_option("TRACE", traces, "traces (.ftrace)")->required();
    app.add_option("--max-reserved", texts.max_reserved, "limit of peak reserved memory")
        ->type_name("SIZE");
    app.add_option("--max-allocated", texts.max_allocated, "limit of peak allocated memory")
        ->type_name("SIZE");
    app.add_option("--max-waste",
                   texts.max_waste,
                   "limit of reserved minus requested memory, at peak reserved")
        ->type_name("SIZE|SHARE%");
    app.add_flag("--no-oom", options.no_oom, "fail if a request ran out of memory");
    app.add_flag("--no-retries",
                 options.no_retries,
                 "fail if a request was retried (cache released, second attempt)");
    app.add_option(
           "--baseline",
           texts.baseline,
           "limits from this JSON of summarize or report: peaks, segments, OOMs and retries")
        ->type_name("FILE");
    app.add_option(
           "--tolerance", texts.tolerance, "how far peaks and segments may exceed the baseline")
        ->type_name("SHARE%")
        ->capture_default_str();
    app.add_flag("--allow-losses", options.losses_allowed, "accept traces that lost events");
    common.add_json(&app);
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    const auto limits = limits_of(texts, options);
    if (!limits) {
        return limits.error();
    }
    if (limits->none()) {
        return Error{
            ErrorCode::kUsage,
            "nothing to check: give --max-reserved, --max-allocated, --max-waste, --no-oom, "
            "--no-retries or --baseline (see 'fraganalyze check --help')"};
    }
    std::string text;
    Json rows = Json::array();
    std::size_t failed = 0;
    for (const std::string& trace : traces) {
        const auto summary = summarize_trace(trace);
        if (!summary) {
            return summary.error();
        }
        for (const CheckRow& row : check_limits(*summary, *limits)) {
            failed += row.passed ? 0 : 1;
            text += fmt::format("{:<6} {}: {}{}\n",
                                row.passed ? "ok" : "FAILED",
                                printable(trace),
                                row.device ? fmt::format("gpu{}: ", *row.device) : "",
                                printable(row.text));
            rows.push_back({{"trace", trace},
                            {"device", row.device ? Json(*row.device) : Json()},
                            {"check", row.check},
                            {"value", row.value},
                            {"limit", row.limit},
                            {"passed", row.passed},
                            {"text", row.text}});
        }
    }
    const std::size_t all = rows.size();
    const Status written =
        common.json.empty()
            ? write_text(text)
            : write_output(common.json,
                           Json{{"schema", 1}, {"passed", failed == 0}, {"checks", rows}}.dump(
                               2, ' ', false, Json::error_handler_t::replace) +
                               "\n");
    if (!written) {
        return written;
    }
    if (failed != 0) {
        return Error{
            ErrorCode::kCheckFailed,
            fmt::format("{} of {} failed", failed, format_counted(all, "check", "checks"))};
    }
    return Ok{};
}

}  // namespace fragtrace::analyzer
