#include "analyzer/report/page/page_compare_json.h"

#include "analyzer/report/page/page_report_json.h"
#include "analyzer/support/units.h"

#include <fmt/format.h>
#include <optional>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using nlohmann::json;

constexpr std::size_t kMostLines = 1000;  // of all devices
constexpr std::size_t kMostFrames = 64;   // of a stack of a line

json place_index(std::size_t device) {
    return device == kPageNoDevice ? json(nullptr) : json(device);
}

json time_json(const std::optional<TimeSpan>& time) {
    return time ? json{time->begin_ns, time->end_ns} : json(nullptr);
}

json line_json(const LineChange& line) {
    const auto bytes = [](const std::optional<HeldBy>& held) {
        return held ? json(held->bytes) : json(nullptr);
    };
    json stacks = json::array();
    for (const StackChange& stack : line.stacks) {
        std::vector<std::string> frames = stack.frames;
        if (frames.size() > kMostFrames) {
            const std::size_t left = frames.size() - kMostFrames;
            frames.resize(kMostFrames);
            frames.push_back(format_counted(left, "more frame", "more frames"));
        }
        stacks.push_back(
            {{"frames", std::move(frames)}, {"a", stack.a.bytes}, {"b", stack.b.bytes}});
    }
    return {{"label", line.label()},
            {"label_a", line.a ? line.a->label : line.label()},
            {"a", bytes(line.a)},
            {"b", bytes(line.b)},
            {"stacks", std::move(stacks)}};
}

json device_json(const PageComparedDevice& device, std::size_t most_lines) {
    json figures = json::array();
    for (const CompareFigure& row : device.figures) {
        figures.push_back({{"name", row.name},
                           {"part", row.part},
                           {"a", row.a},
                           {"b", row.b},
                           {"difference", row.difference}});
    }
    json lines = json::array();
    for (const LineChange& line : device.lines) {
        if (lines.size() < most_lines) lines.push_back(line_json(line));
    }
    const std::size_t left = device.lines.size() - lines.size();
    return {{"gpu", device.gpu},
            {"devices", {place_index(device.devices[0]), place_index(device.devices[1])}},
            {"peaks_ns", {known_json(device.peaks_ns[0]), known_json(device.peaks_ns[1])}},
            {"state", device.state},
            {"headline", device.headline},
            {"note",
             left == 0 ? device.note
                       : fmt::format("{}{}This file leaves out {}.",
                                     device.note,
                                     device.note.empty() ? "" : " ",
                                     format_counted(left, "line", "lines"))},
            {"figures", std::move(figures)},
            {"lines", std::move(lines)}};
}

json place_json(const ComparePlace& place) {
    return {{"text", place.text},
            {"gpu", place.device ? json(*place.device) : json(nullptr)},
            {"times_ns", {time_json(place.a), time_json(place.b)}}};
}

json phase_json(const ComparePhase& phase) {
    return {{"name", phase.name},
            {"only_in", phase.only_in},
            {"values", {phase.count, phase.allocated, phase.reserved, phase.change}},
            {"times_ns", {time_json(phase.a), time_json(phase.b)}}};
}

}  // namespace

json comparison_json(const PageComparison& comparison) {
    json devices = json::array();
    for (const PageComparedDevice& device : comparison.devices)
        devices.push_back(device_json(device, kMostLines / comparison.devices.size()));
    json places = json::array();
    for (const ComparePlace& place : comparison.places)
        places.push_back(place_json(place));
    json phases = json::array();
    for (const ComparePhase& phase : comparison.phases)
        phases.push_back(phase_json(phase));
    json settings = json::array();
    for (const CompareSetting& row : comparison.settings)
        settings.push_back({{"key", row.key}, {"a", row.a}, {"b", row.b}});
    return {{"runs", comparison.runs},
            {"processes", comparison.processes},
            {"devices", std::move(devices)},
            {"places", std::move(places)},
            {"phases", std::move(phases)},
            {"phases_equal", comparison.phases_equal},
            {"settings", std::move(settings)}};
}

}  // namespace fragtrace::analyzer
