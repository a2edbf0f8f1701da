// Compares two runs: which lines hold more at the peak, the phases one by one, and settings that
// differ. Plain data; docs/metrics.md, "Comparing two runs", says how things are matched.
#pragma once

#include "analyzer/analysis/compare/first_request.h"
#include "analyzer/analysis/compare/profile.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct StackChange {
    std::vector<std::string> frames;  // innermost first
    HeldBy a;                         // neither side has a label
    HeldBy b;
};

// Memory that one line of the program held at the peak of each run. A side is unset if its source
// does not list the line and does not list all lines. The two labels differ if the line moved
// within the file, or the file to another folder.
struct LineChange {
    std::optional<HeldBy> a;
    std::optional<HeldBy> b;
    // Stacks whose bytes changed, largest change first; the first few.
    std::vector<StackChange> stacks;

    [[nodiscard]] const std::string& label() const { return (b ? b : a)->label; }
};

struct DeviceComparison {
    DeviceId device = 0;
    std::optional<DeviceProfile> a;  // without holders; nullopt: the run has no such device
    std::optional<DeviceProfile> b;
    std::vector<LineChange> grew;     // most bytes first
    std::vector<LineChange> shrank;   // most bytes first
    std::vector<LineChange> unknown;  // lines with one side unset
};

struct PhaseComparison {
    std::string name;
    RangeKind kind = RangeKind::kApi;
    std::optional<PhaseProfile> a = {};  // without stretches; nullopt: the run has no such phase
    std::optional<PhaseProfile> b = {};
    // The first stretch (0 = the first) whose figures differ, or that only one run has.
    std::optional<std::uint64_t> parts_at = {};
    std::optional<StretchFigures> a_there = {};
    std::optional<StretchFigures> b_there = {};
    // The time of this stretch in each run; set where the figures are.
    std::optional<TimeSpan> a_time = {};
    std::optional<TimeSpan> b_time = {};

    [[nodiscard]] bool differs() const;
};

// The iterations of a device: the n-th of A is compared with the n-th of B.
struct IterationComparison {
    DeviceId device = 0;
    std::uint64_t a_count = 0;
    std::uint64_t b_count = 0;
    // Both runs mark iterations by phases; else they were found from requests, an estimate.
    bool from_phases = false;
    double match_rate = 0;  // the lower rate of the two runs
    // First iteration (0 = the first) whose figures differ.
    std::optional<std::uint64_t> parts_at = {};
    StretchFigures a_there = {};
    StretchFigures b_there = {};
    TimeSpan a_time = {};  // of this iteration
    TimeSpan b_time = {};
};

struct FactChange {
    std::string key;
    std::string a;  // empty = not set
    std::string b;
};

struct Comparison {
    RunProfile a;  // without devices and phases, which the fields below have
    RunProfile b;
    std::vector<DeviceComparison> devices;
    // In the order in which they begin in A, then those that only B has.
    std::vector<PhaseComparison> phases;
    // Index into `phases`: the differing phase whose first differing stretch ends first in A. Unset
    // if no phase differs, or if a source has no single stretches.
    std::optional<std::size_t> first_divergence;
    std::vector<IterationComparison> iterations;  // of devices that have iterations in both runs
    std::vector<FactChange> settings;             // of the allocator and of the process
    std::vector<FirstRequest> requests;  // per device; empty if the requests are equal or not known

    // segments_known() of all devices of both runs.
    [[nodiscard]] bool all_segments_known() const;
};

Comparison compare(RunProfile a, RunProfile b);

}  // namespace fragtrace::analyzer
