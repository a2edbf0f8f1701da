// Limits of `fraganalyze check`. Each is tested at the last value that passes and at the first that
// fails.
#include "analyzer/analysis/check/checks.h"

#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

TraceSummary summary_of_a_run() {
    TraceSummary summary;
    DeviceSummary device;
    device.device = 1;
    RunFigures& run = device.metrics.summary;
    run.peak_reserved = 1000 * kMiB;
    run.peak_allocated = 920 * kMiB;
    run.waste_at_peak = {.requested = 900 * kMiB,
                         .rounding = 10 * kMiB,
                         .slack = 10 * kMiB,
                         .pending = 20 * kMiB,
                         .releasable = 20 * kMiB,
                         .inactive_split = 40 * kMiB};
    run.segments_allocated = 100;
    run.retries = 2;
    run.ooms = 1;
    summary.devices.push_back(std::move(device));
    return summary;
}

// Names of the failed checks, each followed by a blank.
std::string failed(const TraceSummary& summary, const Limits& limits) {
    std::string names;
    for (const CheckRow& row : check_limits(summary, limits)) {
        names += row.passed ? "" : std::string(row.check) + " ";
        CHECK_FALSE(row.text.empty());
    }
    return names;
}

class File {
  public:
    explicit File(const std::string& text)
        : path_("/tmp/fragtrace_check_test." + std::to_string(getpid())) {
        std::ofstream(path_) << text;
    }

    ~File() { unlink(path_.c_str()); }

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace

TEST_CASE("a call that ran out of memory fails the check, also if its device is unknown",
          "[check]") {
    TraceSummary summary;
    Limits limits;
    limits.no_oom = true;
    CHECK(failed(summary, limits).empty());
    summary.calls_of_unknown_device = 1;
    CHECK(failed(summary, limits) == "no-oom ");
    CHECK(check_limits(summary, limits).back().text ==
          "1 call out of memory whose device is unknown, at most 0");
}

TEST_CASE("a value equal to its limit passes, one above fails", "[check]") {
    const TraceSummary summary = summary_of_a_run();
    Limits limits;
    CHECK(limits.none());
    limits.max_reserved = 1000 * kMiB;
    limits.max_allocated = 920 * kMiB;
    limits.max_waste = parse_share_or_bytes("10%").value();
    CHECK_FALSE(limits.none());
    CHECK(failed(summary, limits).empty());
    limits.max_reserved = 1000 * kMiB - 1;
    limits.max_allocated = 920 * kMiB - 1;
    limits.max_waste = parse_share_or_bytes("9.99%").value();
    CHECK(failed(summary, limits) == "max-reserved max-allocated max-waste ");
    limits = {};
    limits.max_waste = parse_share_or_bytes("100MiB").value();
    CHECK(failed(summary, limits).empty());
    limits.max_waste->bytes -= 1;
    CHECK(failed(summary, limits) == "max-waste ");
}

TEST_CASE("a share of the memory is a limit exact to the byte", "[check]") {
    TraceSummary summary = summary_of_a_run();
    RunFigures& run = summary.devices[0].metrics.summary;
    run.waste_at_peak = {};
    run.waste_at_peak.requested = 209715200 - 60817408;
    run.waste_at_peak.slack = 60817408;  // 29 % of 200 MiB
    Limits limits;
    limits.max_waste = parse_share_or_bytes("29%").value();
    CHECK(failed(summary, limits).empty());
    run.waste_at_peak.slack += 100;
    CHECK(failed(summary, limits) == "max-waste ");
}

TEST_CASE("one OOM, retry or lost event fails a limit of zero", "[check]") {
    TraceSummary summary = summary_of_a_run();
    Limits limits;
    limits.no_oom = true;
    limits.no_retries = true;
    CHECK(failed(summary, limits) == "no-oom no-retries ");
    summary.devices[0].metrics.summary.ooms = 0;
    summary.devices[0].metrics.summary.retries = 0;
    CHECK(failed(summary, limits).empty());
    summary.tables.damage.events_lost = 1;
    CHECK(failed(summary, limits) == "no-losses ");
    limits.losses_allowed = true;
    CHECK(failed(summary, limits).empty());
}

TEST_CASE("a run passes within the baseline's tolerance, OOMs and retries have none", "[check]") {
    const TraceSummary summary = summary_of_a_run();
    Limits limits;
    limits.baseline = Baseline{{1,
                                {.peak_allocated = 920 * kMiB,
                                 .peak_reserved = 1000 * kMiB,
                                 .segments_allocated = 100,
                                 .retries = 2,
                                 .ooms = 1}}};
    limits.tolerance = 0;
    CHECK(failed(summary, limits).empty());
    RunFigures& before = limits.baseline->at(1);
    before = {.peak_allocated = 920 * kMiB - 1,
              .peak_reserved = 1000 * kMiB - 1,
              .segments_allocated = 99,
              .retries = 1,
              .ooms = 0};
    CHECK(failed(summary, limits) ==
          "baseline-reserved baseline-allocated baseline-segments baseline-ooms "
          "baseline-retries ");
    limits.tolerance = 0.02;
    CHECK(failed(summary, limits) == "baseline-ooms baseline-retries ");

    limits.baseline = Baseline{{0, {}},
                               {1,
                                {.peak_allocated = kGiB,
                                 .peak_reserved = kGiB,
                                 .segments_allocated = 100,
                                 .retries = 2,
                                 .ooms = 1}}};
    CHECK(failed(summary, limits) == "baseline-device ");  // device 0 is gone
    limits.baseline = Baseline{};
    CHECK(failed(summary, limits) == "baseline-device ");  // device 1 is new
}

TEST_CASE("a limit in percent and a limit in bytes are distinguished", "[check]") {
    CHECK(parse_share_or_bytes("12.5%").value().share == 0.125);
    CHECK(parse_share_or_bytes("2GiB").value().bytes == 2 * kGiB);
    for (const char* bad : {"%", "-1%", "nan%", "1e99%", "10 percent", "", "x%"}) {
        CHECK_FALSE(parse_share_or_bytes(bad).ok());
    }
}

TEST_CASE("a baseline is read, any other file is refused in one line", "[check]") {
    const std::string device =
        R"({"index": 1, "peak": {"reserved": 5, "allocated": 4}, "retries": 3, "ooms": 2,)"
        R"( "segments_allocated": 1})";
    const auto good = read_baseline(File(R"({"schema": 1, "devices": [)" + device + "]}").path());
    REQUIRE(good.ok());
    CHECK(good->at(1).peak_reserved == 5);
    CHECK(good->at(1).segments_allocated == 1);
    for (const std::string& bad : {std::string("{"),
                                   std::string("[]"),
                                   std::string(R"({"schema": 1})"),
                                   std::string(R"({"schema": 2, "devices": []})"),
                                   std::string(R"({"schema": 1, "devices": [7]})"),
                                   std::string(R"({"schema": 1, "devices": [{"index": -1}]})")}) {
        const auto result = read_baseline(File(bad).path());
        REQUIRE_FALSE(result.ok());
        CHECK(result.error().message.find('\n') == std::string::npos);
    }
    CHECK_FALSE(read_baseline("/nonexistent/baseline.json").ok());
}

}  // namespace fragtrace::analyzer
