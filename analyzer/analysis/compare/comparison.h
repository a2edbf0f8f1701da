// Two runs held against each other: who holds more at the peak, phase by phase, and what was set
// otherwise. Plain data; docs/metrics.md, "Comparing two runs", says how things are matched.
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
    HeldBy a;                         // both without a label
    HeldBy b;
};

// What one line of the program held at the peak of each run. Without a side: the source of that
// side does not list the line, and does not list all. The labels differ where the line stands
// elsewhere in the file.
struct LineChange {
    std::optional<HeldBy> a;
    std::optional<HeldBy> b;
    std::vector<StackChange> stacks;  // those that changed, most first; the first few

    [[nodiscard]] const std::string& label() const { return (b ? b : a)->label; }
};

struct DeviceComparison {
    DeviceId device = 0;
    std::optional<DeviceProfile> a;  // without holders; none: the run has no such device
    std::optional<DeviceProfile> b;
    std::vector<LineChange> grew;     // most bytes first
    std::vector<LineChange> shrank;   // likewise
    std::vector<LineChange> unknown;  // a side is not known
};

struct PhaseComparison {
    std::string name;
    RangeKind kind = RangeKind::kApi;
    std::optional<PhaseProfile> a = {};  // without stretches; none: the run has no such phase
    std::optional<PhaseProfile> b = {};
    // The first stretch (0 = the first) whose figures differ, or that only one run has.
    std::optional<std::uint64_t> parts_at = {};
    std::optional<StretchFigures> a_there = {};
    std::optional<StretchFigures> b_there = {};

    [[nodiscard]] bool differs() const;
};

// The iterations of a device, the n-th of A against the n-th of B.
struct IterationComparison {
    DeviceId device = 0;
    std::uint64_t a_count = 0;
    std::uint64_t b_count = 0;
    bool from_phases = false;                    // in both; else found in the record: an estimate
    double match_rate = 0;                       // the lower of the two
    std::optional<std::uint64_t> parts_at = {};  // the first (0 = the first) whose figures differ
    StretchFigures a_there = {};
    StretchFigures b_there = {};
};

struct FactChange {
    std::string key;
    std::string a;  // empty = not set
    std::string b;
};

struct Comparison {
    RunProfile a;  // without devices and phases, which stand below
    RunProfile b;
    std::vector<DeviceComparison> devices;
    std::vector<PhaseComparison> phases;  // as they begin in A, then those that only B has
    // Of `phases`: the one that ends first, in A, among those that part; nothing is set where no
    // phase parts or a source has no single stretches.
    std::optional<std::size_t> first_divergence;
    std::vector<IterationComparison> iterations;  // of devices with iterations in both
    std::vector<FactChange> settings;             // of the allocator and of the process
    std::vector<FirstRequest> requests;  // per device; empty where they are equal or not known
};

Comparison compare(RunProfile a, RunProfile b);

}  // namespace fragtrace::analyzer
