#include "analyzer/report/page/page_compare.h"

#include "analyzer/report/text/compare_rows.h"

#include <iterator>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kValueWidth = 100;  // of a setting, such as a long command line

std::uint64_t peak_time(const std::optional<DeviceProfile>& device) {
    return device ? device->peak_ns.value_or(kPageUnknown) : kPageUnknown;
}

PageComparedDevice compared_device(const DeviceComparison& device) {
    PageComparedDevice made;
    made.gpu = device.device;
    made.peaks_ns = {peak_time(device.a), peak_time(device.b)};
    made.state = (device.a && device.a->state_only) || (device.b && device.b->state_only);
    made.headline = compare_headline(device);
    made.note = compare_state_note(device);
    made.figures = compare_figures(device);
    for (const auto* changes : {&device.grew, &device.shrank, &device.unknown}) {
        made.lines.insert(made.lines.end(), changes->begin(), changes->end());
    }
    return made;
}

void append(std::vector<ComparePlace> from, std::vector<ComparePlace>* to) {
    to->insert(
        to->end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

PageComparison compared_runs(const Comparison& comparison) {
    PageComparison page;
    page.runs = {compared_run(comparison.a), compared_run(comparison.b)};
    for (const DeviceComparison& device : comparison.devices) {
        page.devices.push_back(compared_device(device));
    }
    append(compare_steps(comparison), &page.places);
    if (auto phase = first_different_phase(comparison)) {
        phase->text = "Phases: " + phase->text;
        page.places.push_back(*std::move(phase));
    }
    append(different_requests(comparison), &page.places);
    append(parts_read(comparison), &page.places);
    page.phases = different_phases(comparison);
    page.phases_equal = !comparison.phases.empty() && page.phases.empty();
    page.settings = different_settings(comparison, kValueWidth);
    return page;
}

}  // namespace fragtrace::analyzer
