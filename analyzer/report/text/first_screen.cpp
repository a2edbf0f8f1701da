#include "analyzer/report/text/first_screen.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

std::string device_sentence(const Analysis& analysis, const DeviceAnalysis& device) {
    const RunFigures& run = device.recorded;
    if (device.state_only) {
        return fmt::format("Device {}: a state at one moment, {} reserved, {} allocated.\n",
                           device.device,
                           format_bytes(run.peak_reserved),
                           format_bytes(run.peak_allocated));
    }
    if (!segments_known(run)) {
        return fmt::format("Device {}: {}. Peak allocated {}, reserved unknown.\n",
                           device.device,
                           run.ooms == 0 && !shows_failures(analysis.timeline.facts)
                               ? "failed requests unknown"
                               : format_counted(run.ooms, "failed request", "failed requests"),
                           format_bytes(run.peak_allocated));
    }
    return fmt::format("Device {}: {}, {}. Peak reserved {}, peak allocated {}.\n",
                       device.device,
                       run.ooms == 0 ? "no out-of-memory"
                                     : format_counted(run.ooms, "out-of-memory", "out-of-memories"),
                       format_counted(run.retries, "retry", "retries"),
                       format_bytes(run.peak_reserved),
                       format_bytes(run.peak_allocated));
}

}  // namespace

std::string first_screen_text(const Analysis& analysis, const Terminal& terminal) {
    std::string text = first_line(analysis, terminal);
    for (const DeviceAnalysis& device : analysis.devices) {
        text += device_sentence(analysis, device) + memory_lines(device, terminal);
    }
    text += "  verdict, culprits and what-if rows take longer: they replay every request\n";
    std::string clipped;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        clipped += shorten(text.substr(begin, end - begin), terminal.width()) + "\n";
        begin = end + 1;
    }
    return clipped;
}

}  // namespace fragtrace::analyzer
