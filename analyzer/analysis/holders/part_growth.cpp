#include "analyzer/analysis/holders/part_growth.h"

#include "analyzer/analysis/holders/categories.h"
#include "analyzer/analysis/iterations/phase_names.h"
#include "analyzer/model/library_ranges.h"
#include "analyzer/model/phase_index.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostParts = 16;

// The end of a part. Blocks that are live before `event` count.
struct PartEnd {
    EventIndex event = 0;
    std::uint32_t part = 0;
    std::uint32_t iteration = 0;
    std::int64_t live = 0;
};

struct Parts {
    std::vector<std::string> names;
    std::vector<PartEnd> ends;  // ascending
};

Parts marked_parts(const Timeline& timeline, const Iterations& iterations) {
    Parts parts;
    std::map<std::uint32_t, std::uint32_t> by_text;  // the part's number; kMostParts = left out
    const std::vector<bool> library = library_phases(timeline);
    for (std::size_t i = 0; i < timeline.phases.size(); ++i) {
        const Phase& phase = timeline.phases[i];
        const std::size_t iteration = iterations.of(phase.begin);
        if (library[i] || iteration == 0 || phase.end >= timeline.events.size() ||
            iterations.of(phase.end) != iteration) {
            continue;
        }
        const auto [number, is_new] = by_text.try_emplace(phase.name, kMostParts);
        if (is_new) {
            const std::string name = without_numbers(text_of(timeline, phase.name));
            const auto known = std::find(parts.names.begin(), parts.names.end(), name);
            number->second = static_cast<std::uint32_t>(known - parts.names.begin());
            if (known == parts.names.end() && name != iterations.phase &&
                parts.names.size() < kMostParts) {
                parts.names.push_back(name);
            } else if (known == parts.names.end()) {
                number->second = kMostParts;
            }
        }
        if (number->second != kMostParts) {
            parts.ends.push_back(
                {phase.end, number->second, static_cast<std::uint32_t>(iteration), 0});
        }
    }
    std::stable_sort(parts.ends.begin(), parts.ends.end(), [](const PartEnd& a, const PartEnd& b) {
        return a.event < b.event;
    });
    return parts;
}

// A pass ends where the next one begins.
Parts passes_as_parts(const RunHistory& history) {
    Parts parts;
    parts.names = {"forward", "backward", "optimizer"};
    for (std::size_t i = 0; i + 1 < history.passes.size(); ++i) {
        const Pass& pass = history.passes[i];
        const std::size_t iteration = history.iterations.of(pass.begin);
        if (iteration != 0) {
            const std::uint32_t part = (pass.marks & kMarkOptimizer) != 0  ? 2
                                       : (pass.marks & kMarkBackward) != 0 ? 1
                                                                           : 0;
            parts.ends.push_back(
                {history.passes[i + 1].begin, part, static_cast<std::uint32_t>(iteration), 0});
        }
    }
    return parts;
}

void measure(const Timeline& timeline, const Requests& requests, std::vector<PartEnd>* ends) {
    const auto first_after = [ends](std::size_t from, EventIndex event) {
        return static_cast<std::size_t>(
            std::upper_bound(ends->begin() + static_cast<std::ptrdiff_t>(from),
                             ends->end(),
                             event,
                             [](EventIndex at, const PartEnd& end) { return at < end.event; }) -
            ends->begin());
    };
    std::size_t next = 0;  // the first end after the request
    for (const EventIndex born : requests.events) {
        while (next < ends->size() && (*ends)[next].event <= born) {
            ++next;
        }
        const EventIndex ended = timeline.partner[born];
        if (next == ends->size() || (ended != kNoEvent && ended < (*ends)[next].event)) {
            continue;  // no part ends during its life, as for most blocks
        }
        const auto bytes = static_cast<std::int64_t>(allocated_bytes(timeline.events[born]));
        (*ends)[next].live += bytes;
        const std::size_t gone = ended == kNoEvent ? ends->size() : first_after(next, ended);
        if (gone < ends->size()) {
            (*ends)[gone].live -= bytes;
        }
    }
    std::int64_t live = 0;
    for (PartEnd& end : *ends) {
        live += end.live;
        end.live = live;
    }
}

}  // namespace

std::vector<PartGrowth> part_growth(const Timeline& timeline,
                                    const RunHistory& history,
                                    std::size_t first) {
    if (first == 0) {
        return {};
    }
    Parts parts = marked_parts(timeline, history.iterations);
    if (parts.ends.empty()) {
        parts = passes_as_parts(history);
    }
    measure(timeline, history.requests, &parts.ends);
    std::vector<PartGrowth> result(parts.names.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i].part = parts.names[i];
    }
    // Within one iteration the last end of a part counts. Iterations before `first` do not count.
    std::vector<const PartEnd*> previous(parts.names.size());
    std::vector<const PartEnd*> current(parts.names.size());
    const auto settle = [&](std::size_t part) {
        const PartEnd* end = current[part];
        if (end == nullptr || end->iteration < first) {
            return;
        }
        PartGrowth& growth = result[part];
        growth.last = end->iteration;
        growth.bytes_at_last = static_cast<std::uint64_t>(std::max<std::int64_t>(0, end->live));
        if (previous[part] == nullptr) {
            growth.first = end->iteration;
            growth.bytes_at_first = growth.bytes_at_last;
        } else {
            growth.times_grown += end->live > previous[part]->live ? 1 : 0;
            growth.fell = growth.fell || end->live < previous[part]->live;
        }
        previous[part] = end;
    };
    for (const PartEnd& end : parts.ends) {
        if (current[end.part] != nullptr && current[end.part]->iteration != end.iteration) {
            settle(end.part);
        }
        current[end.part] = &end;
    }
    for (std::size_t part = 0; part < result.size(); ++part) {
        settle(part);
    }
    std::erase_if(result, [](const PartGrowth& growth) { return growth.last == growth.first; });
    return result;
}

}  // namespace fragtrace::analyzer
