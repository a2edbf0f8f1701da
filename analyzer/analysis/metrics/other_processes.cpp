#include "analyzer/analysis/metrics/other_processes.h"

#include <charconv>
#include <fmt/format.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

constexpr unsigned kMostBursts = 1000;

bool take(std::string_view* text, std::string_view word) {
    const bool found = text->starts_with(word);
    text->remove_prefix(found ? word.size() : 0);
    return found;
}

bool take_number(std::string_view* text, std::uint64_t* value) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *value);
    text->remove_prefix(static_cast<std::size_t>(end - text->data()));
    return error == std::errc{};
}

// Format: "event S used U free F self PID, PID BYTES, PID unknown, and K more".
bool read(std::string_view text, OtherProcesses* others) {
    std::uint64_t self = 0;
    if (!take(&text, "event ") || !take_number(&text, &others->sequence) ||
        !take(&text, " used ") || !take_number(&text, &others->used_bytes) ||
        !take(&text, " free ") || !take_number(&text, &others->free_bytes) ||
        !take(&text, " self ") || !take_number(&text, &self)) {
        return false;
    }
    while (take(&text, ", ")) {
        std::uint64_t pid = 0;
        std::uint64_t bytes = 0;
        if (!take_number(&text, &pid)) {
            break;  // "and K more"
        }
        const bool known = take(&text, " ") && take_number(&text, &bytes);
        if (!known) {
            take(&text, "unknown");
        }
        if (pid == self) {
            continue;
        }
        ++others->processes;
        others->other_bytes += bytes;
        if (bytes > others->largest_bytes) {
            others->largest_bytes = bytes;
            others->largest_pid = pid;
        }
    }
    return true;
}

}  // namespace

std::vector<OtherProcesses> other_processes(const Timeline& timeline, DeviceId device) {
    std::vector<OtherProcesses> found;
    for (unsigned burst = 1; burst <= kMostBursts; ++burst) {
        const std::string text =
            timeline.fact(fmt::format("device.{}.processes.{}", device, burst));
        OtherProcesses others;
        if (read(text, &others)) {
            found.push_back(others);
        }
    }
    return found;
}

ContextMemory context_memory(const Timeline& timeline, DeviceId device) {
    ContextMemory context;
    const std::string bytes = timeline.fact(fmt::format("device.{}.context_bytes", device));
    std::string_view text = bytes;
    if (take_number(&text, &context.bytes)) {
        context.measured = timeline.fact(fmt::format("device.{}.context_bytes.measured", device));
    }
    return context;
}

}  // namespace fragtrace::analyzer
