#include "analyzer/analysis/metrics/other_processes.h"

#include "analyzer/support/terminal.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr unsigned kMostBursts = 1000;
constexpr std::size_t kMostNamed = 64;

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
            others->lists_self = true;
            continue;
        }
        ++others->processes;
        others->other_bytes += bytes;
        if (bytes > others->largest_bytes) {
            others->largest_bytes = bytes;
            others->largest_pid = pid;
        }
        if (others->each.size() < kMostNamed) {
            others->each.push_back({.pid = pid, .bytes = bytes, .program = {}});
        }
    }
    return true;
}

// Format: one line per process, "PID PROGRAM".
void read_programs(std::string_view text, OtherProcesses* others) {
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        std::uint64_t pid = 0;
        if (!take_number(&line, &pid) || !take(&line, " ")) {
            continue;
        }
        for (OtherProcess& other : others->each) {
            if (other.pid == pid) {
                other.program = line;
            }
        }
        if (pid == others->largest_pid) {
            others->largest_program = line;
        }
    }
}

}  // namespace

std::vector<OtherProcesses> other_processes(const Timeline& timeline, DeviceId device) {
    std::vector<OtherProcesses> found;
    for (unsigned burst = 1; burst <= kMostBursts; ++burst) {
        const std::string key = fmt::format("device.{}.processes.{}", device, burst);
        OtherProcesses others;
        if (read(timeline.fact(key), &others)) {
            read_programs(timeline.fact(key + ".programs"), &others);
            found.push_back(std::move(others));
        }
    }
    return found;
}

const OtherProcesses* report_at(const std::vector<OtherProcesses>& reports, EventIndex event) {
    const OtherProcesses* found = reports.empty() ? nullptr : &reports.front();
    for (const OtherProcesses& report : reports) {
        // The recorder counts from 1. If events were lost, its numbers are larger than ours.
        if (report.sequence <= std::uint64_t{event} + 1) {
            found = &report;
        }
    }
    return found;
}

std::string largest_process(std::uint64_t pid, const std::string& program) {
    return program.empty() ? fmt::format("pid {}", pid)
                           : fmt::format("pid {} ({})", pid, printable(program));
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
