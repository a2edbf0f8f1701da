// What a comparison of two runs says, in rows and sentences. The terminal and the page print the
// same ones. Texts are printable.
#pragma once

#include "analyzer/analysis/compare/comparison.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// A sentence about a place in both runs. A time is unset if the run has no such place.
struct ComparePlace {
    std::string text;
    std::optional<DeviceId> device = {};  // nullopt: of the whole run
    std::optional<TimeSpan> a = {};
    std::optional<TimeSpan> b = {};
};

// A phase that differs. Values are pairs: "1 GiB -> 2 GiB".
struct ComparePhase {
    std::string name;
    std::string only_in = {};  // "A" or "B": the values are empty
    std::string count = {};
    std::string allocated = {};
    std::string reserved = {};
    std::string change = {};
    // The first range of this name that differs.
    std::optional<TimeSpan> a = {};
    std::optional<TimeSpan> b = {};
};

struct CompareSetting {
    std::string key;
    std::string a;
    std::string b;
};

// In the order of Comparison::phases.
std::vector<ComparePhase> different_phases(const Comparison& comparison);
// "first difference in the 2nd step: ..."; nullopt if no phase is known to differ first.
std::optional<ComparePlace> first_different_phase(const Comparison& comparison);
// One per device with steps in both runs. Times are set if a step differs.
std::vector<ComparePlace> compare_steps(const Comparison& comparison);
// One per device whose requests differ.
std::vector<ComparePlace> different_requests(const Comparison& comparison);
// What was read and compared of runs that were read in part; empty: both were read as a whole.
std::vector<ComparePlace> parts_read(const Comparison& comparison);
// Values longer than `width` bytes are shortened. If their beginnings are equal, they begin shortly
// before the difference.
std::vector<CompareSetting> different_settings(const Comparison& comparison, std::size_t width);

// The input, the recorded program and the number of events.
std::string compared_run(const RunProfile& run);

}  // namespace fragtrace::analyzer
