// What a comparison says about a device of two runs: its main sentences and its figures. Texts are
// printable.
#pragma once

#include "analyzer/analysis/compare/comparison.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

// A figure of both runs. `difference` is empty if they are equal or not comparable.
struct CompareFigure {
    std::string name;
    std::string a;
    std::string b;
    std::string difference = {};
    bool part = false;  // a part of the figure above
};

// The main sentences about a device. Both runs, or only one of them, may have it.
std::string compare_headline(const DeviceComparison& device);
// Why failed requests are unknown, if a run is a state at one moment; otherwise empty.
std::string compare_state_note(const DeviceComparison& device);
// Empty if only one run has the device.
std::vector<CompareFigure> compare_figures(const DeviceComparison& device);

}  // namespace fragtrace::analyzer
