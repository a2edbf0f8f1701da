#include "analyzer/analysis/check/checks.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

class Rows {
  public:
    explicit Rows(std::vector<CheckRow>* rows) : rows_(*rows) {}

    void set_device(DeviceId device) { device_ = device; }

    void at_most_bytes(std::string_view check,
                       std::string_view what,
                       std::uint64_t value,
                       std::uint64_t limit,
                       std::string_view limit_is = "") {
        add(check,
            value,
            limit,
            fmt::format("{} {} ({} bytes), at most {}{} ({})",
                        what,
                        format_bytes(value),
                        value,
                        format_bytes(limit),
                        limit_is,
                        limit));
    }

    void at_most(std::string_view check,
                 std::string_view one,
                 std::string_view many,
                 std::uint64_t value,
                 std::uint64_t limit,
                 std::string_view limit_is = "") {
        add(check,
            value,
            limit,
            fmt::format("{}, at most {}{}",
                        format_counted(value, one, many),
                        format_count(limit),
                        limit_is));
    }

    void add(std::string_view check, std::uint64_t value, std::uint64_t limit, std::string text) {
        rows_.push_back({check, device_, value, limit, value <= limit, std::move(text)});
    }

  private:
    std::vector<CheckRow>& rows_;
    std::optional<DeviceId> device_;
};

std::uint64_t with_tolerance(std::uint64_t value, double tolerance) {
    const double more = std::round(static_cast<double>(value) * tolerance);
    const std::uint64_t room = ~std::uint64_t{0} - value;
    return more >= static_cast<double>(room) ? ~std::uint64_t{0}
                                             : value + static_cast<std::uint64_t>(more);
}

void check_waste(const RunFigures& run, const ShareOrBytes& limit, Rows* rows) {
    const WasteSplit& waste = run.waste_at_peak;
    const std::uint64_t wasted = waste.wasted();
    if (!limit.share) {
        rows->at_most_bytes("max-waste", "waste at peak reserved", wasted, limit.bytes);
        return;
    }
    const std::uint64_t reserved = wasted + waste.requested;
    rows->add(
        "max-waste",
        wasted,
        static_cast<std::uint64_t>(
            std::round(static_cast<double>(reserved) * std::min(*limit.share, 1.0))),
        fmt::format(
            "waste at peak reserved {:.2f} % of {}, at most {:g} %",
            reserved == 0 ? 0 : 100 * static_cast<double>(wasted) / static_cast<double>(reserved),
            format_bytes(reserved),
            100 * *limit.share));
}

void check_baseline(const RunFigures& run, const RunFigures& before, double tolerance, Rows* rows) {
    const std::string allowed =
        tolerance > 0 ? fmt::format(", the baseline's with {:g} % more", 100 * tolerance)
                      : ", the baseline's";
    rows->at_most_bytes("baseline-reserved",
                        "peak reserved",
                        run.peak_reserved,
                        with_tolerance(before.peak_reserved, tolerance),
                        allowed);
    rows->at_most_bytes("baseline-allocated",
                        "peak allocated",
                        run.peak_allocated,
                        with_tolerance(before.peak_allocated, tolerance),
                        allowed);
    rows->at_most("baseline-segments",
                  "segment allocated from the driver",
                  "segments allocated from the driver",
                  run.segments_allocated,
                  with_tolerance(before.segments_allocated, tolerance),
                  allowed);
    rows->at_most("baseline-ooms", "OOM", "OOMs", run.ooms, before.ooms, ", the baseline's");
    rows->at_most(
        "baseline-retries", "retry", "retries", run.retries, before.retries, ", the baseline's");
}

}  // namespace

Result<ShareOrBytes> parse_share_or_bytes(std::string_view text) {
    if (!text.ends_with('%')) {
        if (text != "0" && text.find_first_not_of("0123456789.") == std::string_view::npos) {
            return Error{
                ErrorCode::kUsage,
                fmt::format("'{}' has no unit; write {}% for a share, or a size such as {}MiB",
                            text,
                            text,
                            text)};
        }
        const auto bytes = parse_bytes(text);
        return bytes ? Result<ShareOrBytes>(ShareOrBytes{{}, *bytes}) : bytes.error();
    }
    const std::string_view number = text.substr(0, text.size() - 1);
    double percent = 0;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), percent);
    if (error != std::errc() || end != number.data() + number.size() || !(percent >= 0) ||
        percent > 1e6) {
        return Error{ErrorCode::kUsage, fmt::format("'{}' is no share; write 10% or 512MiB", text)};
    }
    return ShareOrBytes{percent / 100, 0};
}

bool Limits::none() const {
    return !max_reserved && !max_allocated && !max_waste && !no_oom && !no_retries && !baseline;
}

namespace {

bool needs_reserved(const Limits& limits) {
    return limits.max_reserved || limits.max_waste || limits.no_retries || limits.baseline;
}

}  // namespace

std::vector<CheckRow> check_limits(const TraceSummary& summary, const Limits& limits) {
    std::vector<CheckRow> result;
    Rows rows(&result);
    if (!limits.losses_allowed) {
        rows.at_most(
            "no-losses", "event lost", "events lost", summary.tables.damage.events_lost, 0);
    }
    if (limits.no_oom && summary.calls_of_unknown_device != 0) {
        rows.at_most("no-oom",
                     "call out of memory whose device is unknown",
                     "calls out of memory whose device is unknown",
                     summary.calls_of_unknown_device,
                     0);
    }
    std::size_t known = 0;  // devices that the baseline has too
    for (const DeviceSummary& device : summary.devices) {
        const RunFigures& run = device.metrics.summary;
        rows.set_device(device.device);
        if (!limits.losses_allowed && device.metrics.state_only) {
            rows.add("history",
                     1,
                     0,
                     "a state at one moment: earlier peaks, OOMs and retries are not known");
        }
        if (!segments_known(run) && needs_reserved(limits)) {
            rows.add("reserved-known",
                     1,
                     0,
                     "the input does not show reserved memory, waste and retries: only "
                     "--max-allocated and --no-oom can be checked");
            continue;
        }
        if (limits.no_oom && run.ooms == 0 && !summary.failures_known()) {
            rows.add("failures-known", 1, 0, "the input does not show all failed requests");
        }
        if (limits.max_reserved) {
            rows.at_most_bytes(
                "max-reserved", "peak reserved", run.peak_reserved, *limits.max_reserved);
        }
        if (limits.max_allocated) {
            rows.at_most_bytes(
                "max-allocated", "peak allocated", run.peak_allocated, *limits.max_allocated);
        }
        if (limits.max_waste) {
            check_waste(run, *limits.max_waste, &rows);
        }
        if (limits.no_oom) {
            rows.at_most("no-oom", "OOM", "OOMs", run.ooms, 0);
        }
        if (limits.no_retries) {
            rows.at_most("no-retries", "retry", "retries", run.retries, 0);
        }
        if (limits.baseline) {
            const auto before = limits.baseline->find(device.device);
            if (before == limits.baseline->end()) {
                rows.add("baseline-device", 1, 0, "not in the baseline");
            } else {
                ++known;
                check_baseline(run, before->second, limits.tolerance, &rows);
            }
        }
    }
    if (limits.baseline && known < limits.baseline->size()) {
        result.push_back(
            {"baseline-device",
             std::nullopt,
             limits.baseline->size() - known,
             0,
             false,
             fmt::format(
                 "{} of the baseline not in the trace",
                 format_counted(limits.baseline->size() - known, "device is", "devices are"))});
    }
    return result;
}

}  // namespace fragtrace::analyzer
