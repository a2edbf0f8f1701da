#include "analyzer/report/compare_report.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kBatchLines = 8;

std::string about(double bytes) {
    const double rounded = std::round(bytes);
    return rounded < 0 ? "-" + format_bytes(static_cast<std::uint64_t>(-rounded))
                       : format_bytes(static_cast<std::uint64_t>(rounded));
}

}  // namespace

std::string batch_text(const BatchPrediction& prediction, const Terminal& terminal) {
    const std::string card = format_bytes(prediction.capacity_bytes);
    std::string head;
    if (prediction.largest && !prediction.least_failing) {
        head = fmt::format("Every tested batch up to {} fits {} on gpu{} (estimate).",
                           format_count(*prediction.largest),
                           card,
                           prediction.device);
    } else if (prediction.largest) {
        head = fmt::format("A batch of {} fits {} on gpu{} (estimate); {} {}.",
                           format_count(*prediction.largest),
                           card,
                           prediction.device,
                           format_count(*prediction.least_failing),
                           prediction.least_failing == *prediction.largest + 1
                               ? "does not"
                               : "does not; sizes in between were not tested");
        if (prediction.fails_below) {
            head += fmt::format(" A smaller batch can fail too: {} runs out of memory.",
                                format_count(*prediction.fails_below));
        }
    } else {
        head = fmt::format("No batch fits {} on gpu{} (estimate).", card, prediction.device);
    }
    std::string text = terminal.styled(Style::kBold, head) + "\n";
    text += fmt::format("  at the peak   {} and {} per item of the batch\n",
                        about(prediction.sum.fixed_bytes),
                        about(prediction.sum.bytes_per_item));
    for (std::size_t i = 0; i < std::min(kBatchLines, prediction.lines.size()); ++i) {
        const BatchLine& line = prediction.lines[i];
        text += fmt::format("    {:>10} and {:>10} per item  {}\n",
                            about(line.fixed_bytes),
                            about(line.bytes_per_item),
                            printable(line.label));
    }
    if (prediction.lines.size() > kBatchLines) {
        text += fmt::format(
            "    and {}\n",
            format_counted(prediction.lines.size() - kBatchLines, "more line", "more lines"));
    }
    text += fmt::format("  {:>9} {:>14} {:>14}   on {}\n", "batch", "allocated", "reserved", card);
    for (const BatchRow& row : prediction.rows) {
        const std::string recorded =
            row.recorded_reserved
                ? fmt::format(", recorded with {}", format_bytes(*row.recorded_reserved))
                : ", estimate";
        const std::string outcome =
            row.on_card.ooms != 0 ? "runs out of memory"
            : row.on_card.retries != 0
                ? fmt::format("fits with {}: {} reserved",
                              format_counted(row.on_card.retries, "retry", "retries"),
                              format_bytes(row.on_card.peak_reserved))
                : "fits";
        text += fmt::format("  {:>9} {:>14} {:>14}   {}{}\n",
                            format_count(row.batch),
                            format_bytes(row.unlimited.peak_allocated),
                            format_bytes(row.unlimited.peak_reserved),
                            outcome,
                            recorded);
    }
    text += fmt::format(
        "  fitted        {} of {} requests, matched by stack and order; the others keep their "
        "size\n",
        format_count(prediction.fitted_requests),
        format_count(prediction.requests));
    return text;
}

}  // namespace fragtrace::analyzer
