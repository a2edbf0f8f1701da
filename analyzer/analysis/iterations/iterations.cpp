#include "analyzer/analysis/iterations/iterations.h"

#include "analyzer/analysis/iterations/accumulation.h"
#include "analyzer/analysis/iterations/phase_names.h"
#include "analyzer/analysis/iterations/recurrence.h"
#include "analyzer/analysis/iterations/requests.h"
#include "analyzer/model/library_ranges.h"
#include "analyzer/model/pair_map.h"
#include "analyzer/model/phase_index.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr double kLeastRateOfPhases = 0.5;

bool speaks_of_steps(std::string_view name) {
    constexpr std::array<std::string_view, 3> kWords = {"step", "iter", "batch"};
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char character) {
        return static_cast<char>(std::tolower(character));
    });
    // PyTorch's own marks of parts of a step.
    if (lower.starts_with("optimizer.") || lower.find("dataloader") != std::string::npos) {
        return false;
    }
    return std::any_of(kWords.begin(), kWords.end(), [&lower](std::string_view word) {
        return lower.find(word) != std::string::npos;
    });
}

struct NamedPhase {
    std::uint32_t depth = 0xffffffffu;  // least depth at which it occurs
    bool own = false;                   // marked by fragtrace's own interface
    std::vector<EventIndex> begins;
};

using NamedPhases = std::map<std::string, NamedPhase>;

// The phases that one thread marked.
struct ThreadPhases {
    std::uint64_t requests = 0;  // requests of that thread
    NamedPhases names;
};

// Phases are kept apart by thread, since phases of one name in two threads interleave arbitrarily.
// The thread with most requests comes first.
std::vector<ThreadPhases> phases_by_thread(const Timeline& timeline, const Requests& requests) {
    std::map<std::uint32_t, ThreadPhases> threads;
    std::map<std::uint32_t, std::string> names;  // by the text's number
    const std::vector<bool> library = library_phases(timeline);
    for (std::size_t i = 0; i < timeline.phases.size(); ++i) {
        const Phase& phase = timeline.phases[i];
        if (library[i]) {
            continue;
        }
        const auto [name, is_new] = names.try_emplace(phase.name);
        if (is_new) {
            name->second = without_numbers(text_of(timeline, phase.name));
        }
        NamedPhase& named = threads[phase.thread].names[name->second];
        named.depth = std::min(named.depth, phase.depth);
        named.own = named.own || phase.kind == RangeKind::kApi;
        named.begins.push_back(phase.begin);
    }
    if (threads.size() > 1) {
        for (const EventIndex request : requests.events) {
            const OriginId origin = timeline.events[request].origin;
            const auto thread = threads.find(
                origin < timeline.origins.size() ? timeline.origins[origin].thread : 0);
            if (thread != threads.end()) {
                ++thread->second.requests;
            }
        }
    }
    std::vector<ThreadPhases> result;
    for (auto& [thread, phases] : threads) {
        result.push_back(std::move(phases));
    }
    std::stable_sort(
        result.begin(), result.end(), [](const ThreadPhases& a, const ThreadPhases& b) {
            return a.requests > b.requests;
        });
    return result;
}

// Uses the outermost of the phases that pass `serves`; of two equally deep ones the more frequent.
template <typename Serves>
Iterations from_phases(const NamedPhases& names, Serves serves) {
    const NamedPhases::value_type* best = nullptr;
    for (const auto& entry : names) {
        const NamedPhase& phase = entry.second;
        const bool better =
            best == nullptr || phase.depth < best->second.depth ||
            (phase.depth == best->second.depth && phase.begins.size() > best->second.begins.size());
        if (phase.begins.size() >= 2 && serves(entry.first, phase) && better) {
            best = &entry;
        }
    }
    Iterations result;
    if (best != nullptr) {
        result.source = Iterations::Source::kPhases;
        result.phase = best->first;
        result.begins = best->second.begins;
    }
    return result;
}

Iterations from_record(const Timeline& timeline, const Requests& requests) {
    Iterations result;
    const auto anchor = find_anchor(timeline, requests);
    if (!anchor) {
        return result;
    }
    result.source = Iterations::Source::kRecurrence;
    result.anchor = requests.origins[*anchor];
    for (std::size_t i = 0; i < requests.size(); ++i) {
        if (requests.stacks[i] == *anchor) {
            result.begins.push_back(requests.events[i]);
        }
    }
    result.begins = join_parts_of_steps(timeline, requests, std::move(result.begins));
    return result;
}

void measure(const Timeline& timeline, const Requests& requests, Iterations* result) {
    const std::size_t from = requests.size() > kMostRequests ? requests.size() - kMostRequests : 0;
    std::vector<std::uint32_t> stacks;
    std::vector<std::uint32_t> with_sizes;
    std::vector<std::uint32_t> starts;
    PairMap known;
    std::size_t iteration = 0;
    for (std::size_t i = from; i < requests.size(); ++i) {
        const std::size_t now = result->of(requests.events[i]);
        if (now != 0 && now != iteration) {
            starts.push_back(static_cast<std::uint32_t>(i - from));
        }
        iteration = now;
        const std::uint64_t size = timeline.events[requests.events[i]].size_bytes;
        std::uint32_t key = known.find(size, requests.stacks[i]);
        if (key == PairMap::kAbsent) {
            key = static_cast<std::uint32_t>(known.size());
            known.set(size, requests.stacks[i], key);
        }
        stacks.push_back(requests.stacks[i]);
        with_sizes.push_back(key);
    }
    const auto stack_count = static_cast<std::uint32_t>(requests.origins.size());
    const auto key_count = static_cast<std::uint32_t>(known.size());
    result->match_rate = match_rate(stacks, stack_count, starts).rate();
    result->size_match_rate = match_rate(with_sizes, key_count, starts).rate();
}

void keep_last_window(const Timeline& timeline, Iterations* result) {
    EventIndex begin = 0;
    for (const RecordingGap& gap : timeline.gaps) {
        begin = gap.left_out != 0 && gap.end < timeline.events.size() ? gap.end : begin;
    }
    std::erase_if(result->begins, [begin](EventIndex event) { return event < begin; });
    if (result->begins.size() < 2 && begin != 0) {
        *result = {};
    }
}

}  // namespace

std::size_t Iterations::of(EventIndex event) const {
    return static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), event) -
                                    begins.begin());
}

const char* source_name(Iterations::Source source) {
    switch (source) {
        case Iterations::Source::kNone:
            return "none";
        case Iterations::Source::kPhases:
            return "phases";
        case Iterations::Source::kRecurrence:
            return "recurrence";
    }
    return "none";
}

Iterations find_iterations(const Timeline& timeline, const Requests& requests) {
    const std::vector<ThreadPhases> threads = phases_by_thread(timeline, requests);
    // Sources in order: phases that the program calls a step; phases marked by fragtrace's own
    // interface; recurring requests; any other phases. Those come last because cells are often
    // different code. Marks that libraries set for their own work are never used.
    for (int rank = 0; rank < 4; ++rank) {
        Iterations result;
        if (rank == 2) {
            result = from_record(timeline, requests);
        }
        for (std::size_t i = 0; rank != 2 && i < threads.size() && !result.found(); ++i) {
            result = from_phases(threads[i].names,
                                 [rank](const std::string& name, const NamedPhase& phase) {
                                     return rank == 3 || (rank == 0 && speaks_of_steps(name)) ||
                                            (rank == 1 && phase.own && phase.begins.size() >= 3);
                                 });
        }
        keep_last_window(timeline, &result);
        if (result.found()) {
            measure(timeline, requests, &result);
            if (rank == 2 || result.match_rate >= kLeastRateOfPhases) {
                return result;
            }
        }
    }
    return {};
}

}  // namespace fragtrace::analyzer
