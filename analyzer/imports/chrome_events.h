// Reads a trace in Chrome's JSON format, as PyTorch's profiler (Kineto) writes it, event by event.
//
// The file is untrusted: texts, nesting and decompressed bytes are limited. Nothing is kept.
#pragma once

#include "analyzer/support/input_file.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// Members are text as in the file; empty = not there, or not a number or text.
struct ChromeEvent {
    std::string phase;  // "X": a slice; "i": an instant; "M": metadata
    std::string name;
    std::string category;
    std::string pid;
    std::string tid;
    std::string time;                    // microseconds
    std::string duration;                // microseconds
    std::vector<std::string> arguments;  // of `args`: the wanted ones, in the order of the call
};

// What PyTorch's profiler writes about a GPU.
struct ChromeDevice {
    std::string id;
    std::string name;
    std::string total_bytes;
};

// What stands beside the events.
struct ChromeHead {
    bool has_events = false;    // an array of events was found
    std::uint64_t base_ns = 0;  // baseTimeNanoseconds: added to all times; 0 = none
    std::vector<ChromeDevice> devices;
};

// Whether the file is such a trace: JSON (also gzipped) with "traceEvents" in its first MiB.
bool is_chrome_trace(const InputFile& file);

// Calls take() for each event, in the order of the file. Returns an error in words without the
// path; empty = none. Events before the error were taken.
std::string read_chrome_events(const InputFile& file,
                               std::span<const std::string_view> wanted_arguments,
                               const std::function<void(const ChromeEvent&)>& take,
                               ChromeHead* head);

// Converts microseconds, a decimal number, to nanoseconds. Later times than kMostTime_ns, and
// earlier ones than 0, are refused. Digits are read one by one, because a double cannot hold unix
// times in nanoseconds.
std::optional<std::uint64_t> chrome_nanoseconds(std::string_view microseconds);

}  // namespace fragtrace::analyzer
