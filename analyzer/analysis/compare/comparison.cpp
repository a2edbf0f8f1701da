#include "analyzer/analysis/compare/comparison.h"

#include "analyzer/analysis/metrics/known_figures.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kStacksPerLine = 3;

std::uint64_t distance(std::uint64_t a, std::uint64_t b) {
    return std::max(a, b) - std::min(a, b);
}

// ---- holders ------------------------------------------------------------------------------------

// A label without its line number: "train.py:12 step" becomes "train.py step". Two versions of a
// file match by it, if only one line of that function holds memory in each run.
std::string place_of(const std::string& label) {
    const std::size_t blank = label.find(' ');
    const std::size_t colon = label.rfind(':', blank);
    if (blank == std::string::npos || colon == std::string::npos || colon + 1 == blank ||
        label.find_first_not_of("0123456789", colon + 1) != blank) {
        return "";
    }
    return label.substr(0, colon) + label.substr(blank);
}

// Of a label that has a place.
std::uint64_t line_number(const std::string& label) {
    return std::strtoull(label.c_str() + label.rfind(':', label.find(' ')) + 1, nullptr, 10);
}

// A place without the folder: "old/train.py step" becomes "train.py step". Two copies of a program
// in different folders match by it.
std::string place_in_any_folder(const std::string& label) {
    const std::string place = place_of(label);
    const std::size_t slash = place.rfind('/', place.find(' '));
    return slash == std::string::npos ? place : place.substr(slash + 1);
}

using PlaceOf = std::string (*)(const std::string& label);

// A stack without line numbers, so that calls match although an edit moved them.
std::vector<std::string> places_of(const std::vector<std::string>& frames, PlaceOf place_of) {
    std::vector<std::string> places;
    places.reserve(frames.size());
    for (const std::string& frame : frames) {
        const std::string place = place_of(frame);
        places.push_back(place.empty() ? frame : place);
    }
    return places;
}

std::vector<StackChange> changed_stacks(const HeldByLine* a,
                                        const HeldByLine* b,
                                        PlaceOf place_of) {
    std::map<std::vector<std::string>, StackChange> by_stack;
    for (const auto& [line, side] :
         {std::pair{a, &StackChange::a}, std::pair{b, &StackChange::b}}) {
        for (const HeldByStack& stack :
             line == nullptr ? std::vector<HeldByStack>{} : line->stacks) {
            StackChange& change = by_stack[places_of(stack.frames, place_of)];
            change.frames = stack.frames;
            (change.*side).add(stack.held.bytes, stack.held.blocks);
        }
    }
    std::vector<StackChange> changes;
    for (auto& [places, change] : by_stack) {
        if (change.a.bytes != change.b.bytes) {
            changes.push_back(std::move(change));
        }
    }
    std::stable_sort(
        changes.begin(), changes.end(), [](const StackChange& x, const StackChange& y) {
            return distance(x.a.bytes, x.b.bytes) > distance(y.a.bytes, y.b.bytes);
        });
    changes.resize(std::min(changes.size(), kStacksPerLine));
    return changes;
}

using LinesByLabel = std::map<std::string, const HeldByLine*>;

LinesByLabel by_label(const DeviceProfile* device) {
    LinesByLabel lines;
    if (device != nullptr) {
        for (const HeldByLine& line : device->holders) {
            lines[line.held.label] = &line;
        }
    }
    return lines;
}

// Places that exactly one of these lines has.
LinesByLabel by_single_place(const LinesByLabel& lines, PlaceOf place_of) {
    LinesByLabel places;
    for (const auto& [label, line] : lines) {
        const std::string place = place_of(label);
        if (!place.empty()) {
            const auto [found, is_new] = places.try_emplace(place, line);
            if (!is_new) {
                found->second = nullptr;
            }
        }
    }
    std::erase_if(places, [](const auto& place) { return place.second == nullptr; });
    return places;
}

// Pairs of lines of one place with equal memory, in the order of their lines. An edit above them
// moved them; which of several equal lines is new cannot be told.
std::vector<std::pair<const HeldByLine*, const HeldByLine*>> equal_in_place(const LinesByLabel& a,
                                                                            const LinesByLabel& b,
                                                                            PlaceOf place_of) {
    using Key = std::tuple<std::string, std::int64_t, std::int64_t>;  // place, bytes, blocks
    const auto by_key = [place_of](const LinesByLabel& lines) {
        std::map<Key, std::vector<const HeldByLine*>> keys;
        for (const auto& [label, line] : lines) {
            if (const std::string place = place_of(label); !place.empty()) {
                keys[{place, line->held.bytes, line->held.blocks}].push_back(line);
            }
        }
        for (auto& [key, same] : keys) {
            std::sort(same.begin(), same.end(), [](const HeldByLine* x, const HeldByLine* y) {
                return line_number(x->held.label) < line_number(y->held.label);
            });
        }
        return keys;
    };
    const auto in_b = by_key(b);
    std::vector<std::pair<const HeldByLine*, const HeldByLine*>> pairs;
    for (const auto& [key, of_a] : by_key(a)) {
        if (const auto found = in_b.find(key); found != in_b.end()) {
            for (std::size_t i = 0; i < std::min(of_a.size(), found->second.size()); ++i) {
                pairs.emplace_back(of_a[i], found->second[i]);
            }
        }
    }
    return pairs;
}

LineChange change_of(
    const HeldByLine* a, const HeldByLine* b, bool a_has_all, bool b_has_all, PlaceOf place_of) {
    LineChange change;
    if (a != nullptr || a_has_all) {
        change.a = a != nullptr ? a->held : HeldBy{.label = b->held.label};
    }
    if (b != nullptr || b_has_all) {
        change.b = b != nullptr ? b->held : HeldBy{.label = a->held.label};
    }
    if (a_has_all && b_has_all) {
        change.stacks = changed_stacks(a, b, place_of);
    }
    return change;
}

void compare_holders(const RunProfile& a,
                     const RunProfile& b,
                     const DeviceProfile* a_device,
                     const DeviceProfile* b_device,
                     DeviceComparison* result) {
    if (!a.has_holders || !b.has_holders) {
        return;
    }
    LinesByLabel only_a = by_label(a_device);
    LinesByLabel only_b = by_label(b_device);
    std::vector<LineChange> changes;
    const auto add = [&](const HeldByLine* in_a, const HeldByLine* in_b, PlaceOf match = place_of) {
        changes.push_back(change_of(in_a, in_b, a.all_holders, b.all_holders, match));
    };
    for (auto line = only_a.begin(); line != only_a.end();) {
        const auto found = only_b.find(line->first);
        if (found == only_b.end()) {
            ++line;
            continue;
        }
        add(line->second, found->second);
        only_b.erase(found);
        line = only_a.erase(line);
    }
    for (const PlaceOf match : {place_of, place_in_any_folder}) {
        for (const auto& [in_a, in_b] : equal_in_place(only_a, only_b, match)) {
            add(in_a, in_b, match);
            only_a.erase(in_a->held.label);
            only_b.erase(in_b->held.label);
        }
        const LinesByLabel places = by_single_place(only_b, match);
        for (const auto& [place, line] : by_single_place(only_a, match)) {
            if (const auto found = places.find(place); found != places.end()) {
                add(line, found->second, match);
                only_a.erase(line->held.label);
                only_b.erase(found->second->held.label);
            }
        }
    }
    for (const auto& [label, line] : only_a) {
        add(line, nullptr);
    }
    for (const auto& [label, line] : only_b) {
        add(nullptr, line);
    }
    for (LineChange& change : changes) {
        if (!change.a || !change.b) {
            result->unknown.push_back(std::move(change));
        } else if (change.a->bytes != change.b->bytes) {
            (change.b->bytes > change.a->bytes ? result->grew : result->shrank)
                .push_back(std::move(change));
        }
    }
    const auto more = [](const LineChange& x, const LineChange& y) {
        return distance(x.a.value().bytes, x.b.value().bytes) >
               distance(y.a.value().bytes, y.b.value().bytes);
    };
    std::stable_sort(result->grew.begin(), result->grew.end(), more);
    std::stable_sort(result->shrank.begin(), result->shrank.end(), more);
}

std::vector<DeviceComparison> compare_devices(const RunProfile& a, const RunProfile& b) {
    std::map<DeviceId, std::pair<const DeviceProfile*, const DeviceProfile*>> devices;
    for (const DeviceProfile& device : a.devices) {
        devices[device.device].first = &device;
    }
    for (const DeviceProfile& device : b.devices) {
        devices[device.device].second = &device;
    }
    std::vector<DeviceComparison> result;
    for (const auto& [id, sides] : devices) {
        DeviceComparison& device = result.emplace_back();
        device.device = id;
        compare_holders(a, b, sides.first, sides.second, &device);
        for (const auto& [from, to] :
             {std::pair{sides.first, &device.a}, std::pair{sides.second, &device.b}}) {
            if (from != nullptr) {
                *to = *from;
                (*to)->holders.clear();
            }
        }
    }
    return result;
}

// ---- phases -------------------------------------------------------------------------------------

void find_divergence(const PhaseProfile& a, const PhaseProfile& b, PhaseComparison* result) {
    const std::size_t most = std::max(a.stretches.size(), b.stretches.size());
    for (std::size_t i = 0; i < most; ++i) {
        const PhaseStretch* of_a = i < a.stretches.size() ? &a.stretches[i] : nullptr;
        const PhaseStretch* of_b = i < b.stretches.size() ? &b.stretches[i] : nullptr;
        if (of_a != nullptr && of_b != nullptr && of_a->figures == of_b->figures) {
            continue;
        }
        result->parts_at = i;
        result->a_there = of_a != nullptr ? std::optional(of_a->figures) : std::nullopt;
        result->b_there = of_b != nullptr ? std::optional(of_b->figures) : std::nullopt;
        result->a_time = of_a != nullptr ? std::optional(of_a->time) : std::nullopt;
        result->b_time = of_b != nullptr ? std::optional(of_b->time) : std::nullopt;
        return;
    }
}

void compare_phases(const RunProfile& a, const RunProfile& b, Comparison* result) {
    if (!a.has_phases || !b.has_phases) {
        return;
    }
    std::map<std::pair<std::string_view, RangeKind>, const PhaseProfile*> of_b;
    for (const PhaseProfile& phase : b.phases) {
        of_b[{phase.name, phase.kind}] = &phase;
    }
    const auto sums = [](const PhaseProfile& phase) {
        PhaseProfile copy = phase;
        copy.stretches.clear();
        return copy;
    };
    std::uint64_t first_end = ~std::uint64_t{0};
    for (const PhaseProfile& phase : a.phases) {
        PhaseComparison row{.name = phase.name, .kind = phase.kind, .a = sums(phase)};
        if (const auto found = of_b.find({phase.name, phase.kind}); found != of_b.end()) {
            row.b = sums(*found->second);
            if (!phase.stretches.empty() && !found->second->stretches.empty()) {
                find_divergence(phase, *found->second, &row);
            }
            of_b.erase(found);
            if (row.a_there && row.b_there && phase.stretches[*row.parts_at].ended < first_end) {
                first_end = phase.stretches[*row.parts_at].ended;
                result->first_divergence = result->phases.size();
            }
        }
        result->phases.push_back(std::move(row));
    }
    for (const PhaseProfile& phase : b.phases) {
        if (of_b.contains({phase.name, phase.kind})) {
            result->phases.push_back({.name = phase.name, .kind = phase.kind, .b = sums(phase)});
        }
    }
}

std::vector<IterationComparison> compare_iterations(const RunProfile& a, const RunProfile& b) {
    std::vector<IterationComparison> result;
    for (const IterationProfile& of_a : a.iterations) {
        for (const IterationProfile& of_b : b.iterations) {
            if (of_a.device != of_b.device) {
                continue;
            }
            IterationComparison row{.device = of_a.device,
                                    .a_count = of_a.stretches.size(),
                                    .b_count = of_b.stretches.size(),
                                    .from_phases = of_a.from_phases && of_b.from_phases,
                                    .match_rate = std::min(of_a.match_rate, of_b.match_rate)};
            const std::size_t both = std::min(row.a_count, row.b_count);
            for (std::size_t i = 0; i < both && !row.parts_at; ++i) {
                if (of_a.stretches[i] != of_b.stretches[i]) {
                    row.parts_at = i;
                    row.a_there = of_a.stretches[i];
                    row.b_there = of_b.stretches[i];
                    row.a_time = of_a.times[i];
                    row.b_time = of_b.times[i];
                }
            }
            result.push_back(row);
        }
    }
    return result;
}

// ---- settings -----------------------------------------------------------------------------------

// True for facts that change how much memory a run needs, or that say what ran. All other facts
// (hosts, addresses, counters of the recorder) differ between any two runs.
bool is_setting(std::string_view key) {
    constexpr std::array kKeys = {std::string_view("command_line"),
                                  std::string_view("allocator_conf"),
                                  std::string_view("allocator_backend"),
                                  std::string_view("torch_version"),
                                  std::string_view("torch.caching"),
                                  std::string_view("python.version"),
                                  std::string_view("cuda_driver_version"),
                                  std::string_view("cuda_runtime_version"),
                                  std::string_view("device.count"),
                                  std::string_view("options.min_bytes"),
                                  std::string_view("recorder.version"),
                                  std::string_view("virtual")};
    if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) {
        return true;
    }
    if (key.starts_with("environment.")) {
        return !key.starts_with("environment.FRAGTRACE_");
    }
    return key.starts_with("device.") && (key.ends_with(".name") || key.ends_with(".total_bytes") ||
                                          key.ends_with(".context_bytes") || key.ends_with(".mig"));
}

std::vector<FactChange> compare_settings(const RunProfile& a, const RunProfile& b) {
    std::vector<FactChange> changes;
    if (!a.has_facts || !b.has_facts) {
        if (a.command_line != b.command_line) {
            changes.push_back({"command_line", a.command_line, b.command_line});
        }
        return changes;
    }
    std::set<std::string> keys;
    for (const RunProfile* run : {&a, &b}) {
        for (const auto& [key, value] : run->facts) {
            if (is_setting(key)) {
                keys.insert(key);
            }
        }
    }
    for (const std::string& key : keys) {
        const auto in_a = a.facts.find(key);
        const auto in_b = b.facts.find(key);
        FactChange change{key,
                          in_a == a.facts.end() ? std::string() : in_a->second,
                          in_b == b.facts.end() ? std::string() : in_b->second};
        if (change.a != change.b) {
            changes.push_back(std::move(change));
        }
    }
    return changes;
}

}  // namespace

bool PhaseComparison::differs() const {
    return !a || !b || parts_at || a->count != b->count || a->figures != b->figures;
}

bool Comparison::all_segments_known() const {
    return std::all_of(devices.begin(), devices.end(), [](const DeviceComparison& device) {
        return (!device.a || segments_known(device.a->run)) &&
               (!device.b || segments_known(device.b->run));
    });
}

Comparison compare(RunProfile a, RunProfile b) {
    Comparison result;
    result.devices = compare_devices(a, b);
    compare_phases(a, b, &result);
    result.iterations = compare_iterations(a, b);
    result.settings = compare_settings(a, b);
    for (RunProfile* run : {&a, &b}) {
        run->devices.clear();
        run->phases.clear();
        run->iterations.clear();
    }
    result.a = std::move(a);
    result.b = std::move(b);
    return result;
}

}  // namespace fragtrace::analyzer
