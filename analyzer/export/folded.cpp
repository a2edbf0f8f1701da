// Formats of weighted stacks: folded lines and speedscope.
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/export/stack_weights.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/output_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

// Folded lines separate frames by ";". flamegraph.pl takes a number after a space for a value.
std::string folded_frame(std::string text) {
    std::replace(text.begin(), text.end(), ';', ':');
    const std::size_t end = text.find_last_not_of("0123456789");
    if (end != std::string::npos && end + 1 != text.size() && text[end] == ' ') {
        text[end] = '_';
    }
    return text;
}

constexpr std::pair<StackQuantity, const char*> kQuantities[] = {
    {StackQuantity::kHolders, "held"},
    {StackQuantity::kWaste, "free memory that cannot be released"},
    {StackQuantity::kAllocations, "allocated in all"},
};

}  // namespace

Status export_folded(const Analysis& analysis, const ExportOptions& options) {
    if (options.quantity == StackQuantity::kWaste && !shows_reserved(analysis.timeline.facts)) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: this {} does not show reserved memory, so waste is unknown",
                                 analysis.timeline.path,
                                 analysis.timeline.fact("import"))};
    }
    const RecordedState state = state_at_moment(analysis, options);
    return write_output(options.output, [&](std::FILE* file) -> Status {
        for (const DeviceAnalysis& device : analysis.devices) {
            const std::string first =
                analysis.devices.size() > 1 ? fmt::format("device {};", device.device) : "";
            for (const StackWeight& stack :
                 weighted_stacks(analysis, device, options.quantity, state).stacks) {
                std::string line = first;
                for (std::string& frame : flame_frames(analysis.symbols.get(), stack.origin)) {
                    line += folded_frame(std::move(frame)) + ";";
                }
                line.back() = ' ';
                fmt::print(file, "{}{}\n", line, stack.bytes);
            }
        }
        return Ok{};
    });
}

Status export_speedscope(const Analysis& analysis, const ExportOptions& options) {
    const RecordedState state = state_at_moment(analysis, options);
    Json frames = Json::array();
    std::map<std::string, std::size_t> numbers;
    Json profiles = Json::array();
    for (const DeviceAnalysis& device : analysis.devices) {
        for (const auto& [quantity, words] : kQuantities) {
            if (quantity == StackQuantity::kWaste && !segments_known(device.recorded)) {
                continue;
            }
            const WeightedStacks weighted = weighted_stacks(analysis, device, quantity, state);
            Json samples = Json::array();
            Json weights = Json::array();
            std::uint64_t sum = 0;
            for (const StackWeight& weight : weighted.stacks) {
                Json stack = Json::array();
                for (const std::string& frame :
                     flame_frames(analysis.symbols.get(), weight.origin)) {
                    const auto [found, is_new] = numbers.try_emplace(frame, frames.size());
                    if (is_new) {
                        frames.push_back({{"name", frame}});
                    }
                    stack.push_back(found->second);
                }
                samples.push_back(std::move(stack));
                weights.push_back(weight.bytes);
                sum += weight.bytes;
            }
            std::string name = fmt::format("device {}: {}", device.device, words);
            if (weighted.moment != kNoEvent) {
                name += fmt::format(" at event {}", weighted.moment);
            }
            profiles.push_back({{"type", "sampled"},
                                {"name", name},
                                {"unit", "bytes"},
                                {"startValue", 0},
                                {"endValue", sum},
                                {"samples", std::move(samples)},
                                {"weights", std::move(weights)}});
        }
    }
    const std::string part = part_text(analysis.timeline);
    const Json document = {
        {"$schema", "https://www.speedscope.app/file-format-schema.json"},
        {"exporter", "fragtrace " FRAGTRACE_VERSION},
        {"name", analysis.timeline.fact("command_line") + (part.empty() ? "" : " (" + part + ")")},
        {"activeProfileIndex", 0},
        {"shared", {{"frames", std::move(frames)}}},
        {"profiles", std::move(profiles)}};
    return write_output(options.output,
                        document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace fragtrace::analyzer
