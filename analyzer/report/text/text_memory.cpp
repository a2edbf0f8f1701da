// Lines of the text report about a device: its settings, peaks, waste and driver calls.
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <array>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

std::string waste_bar(const WasteSplit& waste, const Terminal& terminal) {
    if (!terminal.colors() || waste.reserved == 0) {
        return "";
    }
    constexpr std::size_t kIndent = 13;
    const std::size_t columns = terminal.columns().value_or(terminal.width());
    const std::size_t width = std::min<std::size_t>(60, columns - kIndent);
    const std::array<std::pair<std::uint64_t, Style>, 4> parts = {{
        {waste.requested, Style::kGreen},
        {waste.rounding + waste.slack + waste.pending, Style::kYellow},
        {waste.inactive_split, Style::kOrange},
        {waste.releasable, Style::kDim},
    }};
    std::string bar(kIndent, ' ');
    std::uint64_t before = 0;
    for (const auto& [bytes, style] : parts) {
        const std::size_t from = before * width / waste.reserved;
        before += bytes;
        std::string cells;
        for (std::size_t i = from; i < before * width / waste.reserved; ++i) {
            cells += "█";
        }
        bar += terminal.styled(style, cells);
    }
    return bar + "\n";
}

// The allocator of the program's tensors if it was not PyTorch's own pool, otherwise that pool's
// settings.
std::string settings_in_force(const Timeline& timeline, const DeviceAnalysis& device) {
    if (!segments_known(device.recorded)) return "unknown";
    const std::string backend = timeline.fact("allocator_backend", "native");
    if (backend != "native") return "allocator " + printable(backend);
    const std::string caching = timeline.fact("torch.caching");
    if (caching == "off") return "caching off";
    return (device.config.empty() ? "default" : printable(device.config)) +
           (caching.empty() ? "" : ", caching off for a time");
}

}  // namespace

std::vector<ReportLine> device_lines(const Analysis& analysis, const DeviceAnalysis& device) {
    return {{fmt::format("device {}", device.device),
             fmt::format("{}{}, settings: {}",
                         printable(device.name),
                         device.virtual_gpu ? " (virtual: kernels computed nothing)" : "",
                         settings_in_force(analysis.timeline, device))}};
}

std::vector<ReportLine> past_pool_lines(const RunFigures& run) {
    if (run.peak_past_pool == 0) {
        return {};
    }
    return {{"past pool",
             fmt::format("at most {} while caching was off, not in these peaks; at most {} "
                         "together with reserved",
                         format_bytes(run.peak_past_pool),
                         format_bytes(run.peak_with_past_pool))}};
}

std::vector<ReportLine> asleep_lines(const DeviceAnalysis& device) {
    if (device.peak_unmapped_bytes == 0) {
        return {};
    }
    return {{"asleep",
             fmt::format("a sleep mode had unmapped up to {} of the reserved memory",
                         format_bytes(device.peak_unmapped_bytes))}};
}

std::vector<ReportLine> asleep_lines(const Diagnosis& failure) {
    std::uint64_t unmapped_bytes = 0;
    for (const auto& [pool, bytes] : failure.heap.unmapped_bytes) {
        unmapped_bytes += bytes;
    }
    if (unmapped_bytes == 0) {
        return {};
    }
    return {{"asleep",
             fmt::format("{} of the reserved memory is unmapped for now",
                         format_bytes(unmapped_bytes))}};
}

std::vector<ReportLine> driver_lines(const DeviceAnalysis& device) {
    const RunFigures& run = device.recorded;
    std::string text = fmt::format("{}, {}, {}",
                                   driver_calls(run.segments_allocated, "cudaMalloc", "map"),
                                   driver_calls(run.segments_freed, "cudaFree", "unmap"),
                                   format_counted(run.retries, "retry", "retries"));
    // At its own limit a process fails without asking the driver, so nothing is recorded.
    text += device.limit_bytes == 0 ? ""
                                    : " (those at the process's own memory limit are not recorded)";
    if (run.driver_time_ns != 0) {
        text += fmt::format(", {} in driver calls", format_duration(run.driver_time_ns));
    }
    return {{"driver", text}};
}

std::string memory_lines(const DeviceAnalysis& device, const Terminal& terminal) {
    const RunFigures& run = device.recorded;
    const WasteSplit& waste = run.waste_at_peak;
    if (!segments_known(run)) {
        return fmt::format(
            "  peaks      requested {}, allocated {}, active unknown, reserved {}\n"
            "  waste      unknown\n"
            "  driver     calls and retries unknown\n",
            requested_known(run) ? format_bytes(run.peak_requested) : "unknown",
            format_bytes(run.peak_allocated),
            reserved_known(run) ? format_bytes(run.peak_reserved) : "unknown");
    }
    std::string text = fmt::format(
        "  {}      requested {}, allocated {}, active {}, reserved {} of {}\n",
        device.state_only ? "holds" : "peaks",
        format_bytes(run.peak_requested),
        format_bytes(run.peak_allocated),
        format_bytes(run.peak_active),
        format_bytes(run.peak_reserved),
        device.capacity_known ? format_bytes(device.capacity_bytes) : "an unknown capacity");
    text += printed(asleep_lines(device));
    text += printed(past_pool_lines(run));
    text += fmt::format(
        "  waste      {}rounding {}, slack {}, pending {}, releasable {}, "
        "inactive split {}\n",
        device.state_only ? "" : "at peak reserved: ",
        format_bytes(waste.rounding),
        format_bytes(waste.slack),
        format_bytes(waste.pending),
        format_bytes(waste.releasable),
        format_bytes(waste.inactive_split));
    text += waste_bar(waste, terminal);
    if (device.state_only) {
        return text;
    }
    return text + printed(driver_lines(device));
}

}  // namespace fragtrace::analyzer
