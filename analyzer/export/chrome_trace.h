// Reads the slices of a trace in Chrome's JSON format, as PyTorch's profiler (Kineto) writes it:
// operators, kernels, copies. The file is untrusted.
#pragma once

#include "analyzer/support/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct ChromeSlice {
    std::uint64_t begin_ns = 0;  // unix time
    std::uint64_t end_ns = 0;
    std::uint32_t name = 0;  // index into ChromeTrace::texts
    std::uint32_t category = 0;
};

// The slices with one pid and tid. For a kernel these are the numbers of the GPU and the stream.
struct ChromeTrack {
    std::string pid;  // a number or a word
    std::string tid;
    std::vector<ChromeSlice> slices;  // ascending begin; of equal begins, the longest first
};

struct ChromeTrace {
    std::vector<ChromeTrack> tracks;
    std::vector<std::string> texts;                     // printable; [0] is empty
    std::map<std::string, std::string> process_names;   // by pid
    std::map<std::string, std::string> process_labels;  // by pid
    std::map<std::string, std::string> thread_names;    // by pid and tid, separated by a space
    std::map<std::string, std::uint64_t> skipped;       // number of events by kind, in words
    std::uint64_t slices = 0;
    std::uint64_t first_ns = 0;  // of all slices
    std::uint64_t last_ns = 0;
};

// Errors (kInput): not such a file, damaged, no slices, or times that are not unix times.
Result<ChromeTrace> read_chrome_trace(const std::string& path);

}  // namespace fragtrace::analyzer
