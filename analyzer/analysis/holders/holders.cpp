#include "analyzer/analysis/holders/holders.h"

#include "analyzer/trace/user_frame.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Joins places by line and kind.
class Places {
  public:
    void add(const HoldingLine& place) {
        HoldingLine& joined = by_label_[{place.held.label, place.category, place.user_category}];
        joined.held.label = place.held.label;
        joined.held.origin = place.held.origin;
        joined.held.add(place.held.bytes, place.held.blocks);
        joined.category = place.category;
        joined.user_category = place.user_category;
    }

    std::vector<HoldingLine> sorted() {
        std::vector<HoldingLine> rows;
        for (auto& [key, place] : by_label_) {
            if (place.held.bytes != 0) {
                rows.push_back(std::move(place));
            }
        }
        std::stable_sort(rows.begin(), rows.end(), [](const HoldingLine& a, const HoldingLine& b) {
            return std::abs(a.held.bytes) > std::abs(b.held.bytes);
        });
        return rows;
    }

  private:
    std::map<std::tuple<std::string, Category, std::string>, HoldingLine> by_label_;
};

// The number of a block's request. nullopt for a block that a checkpoint listed.
std::optional<std::size_t> request_of(const Requests& requests, EventIndex request) {
    const auto found = std::lower_bound(requests.events.begin(), requests.events.end(), request);
    if (found == requests.events.end() || *found != request) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(found - requests.events.begin());
}

// Finds the place in another iteration that corresponds to request `at`: the same occurrence of the
// same stack. If there is none, tries the requests before `at`.
std::optional<std::size_t> same_place(const RunHistory& history,
                                      std::size_t begin_at,
                                      std::size_t at,
                                      std::size_t then_at,
                                      std::size_t then_end) {
    constexpr std::size_t kMostTried = 64;
    const std::vector<std::uint32_t>& stacks = history.requests.stacks;
    for (std::size_t tried = 0; tried < kMostTried && at >= begin_at; ++tried, --at) {
        auto occurrence = std::count(stacks.begin() + static_cast<std::ptrdiff_t>(begin_at),
                                     stacks.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                     stacks[at]);
        for (std::size_t i = then_at; i < then_end; ++i) {
            occurrence -= stacks[i] == stacks[at] ? 1 : 0;
            if (occurrence == 0) {
                return i;
            }
        }
        if (at == begin_at) {
            break;
        }
    }
    return std::nullopt;
}

std::size_t first_request_from(const Requests& requests, EventIndex event) {
    return static_cast<std::size_t>(
        std::lower_bound(requests.events.begin(), requests.events.end(), event) -
        requests.events.begin());
}

}  // namespace

const HoldingLine* same_line(const std::vector<HoldingLine>& rows, const HoldingLine& row) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&row](const HoldingLine& other) {
        return other.held.label == row.held.label && shown_category(other) == shown_category(row);
    });
    return found == rows.end() ? nullptr : &*found;
}

BlockLabels::BlockLabels(const Timeline& timeline, const HeapSnapshot& heap, Symbolizer* symbols)
    : timeline_(timeline), symbols_(symbols) {
    for (const HeapBlock& block : heap.blocks) {
        if (block.state != BlockState::kFree && block.allocated_by < timeline.events.size() &&
            has_stack(timeline.origins[timeline.events[block.allocated_by].origin])) {
            by_size_ = false;
            return;
        }
    }
}

std::pair<OriginId, std::uint64_t> BlockLabels::key_of(const HeapBlock& block) const {
    if (by_size_) {
        return {0, block.size_bytes};
    }
    const bool known = block.allocated_by < timeline_.events.size();
    return {known ? timeline_.events[block.allocated_by].origin : OriginId{0}, 0};
}

std::string BlockLabels::label_of(const std::pair<OriginId, std::uint64_t>& key) const {
    return key.second != 0 ? label_by_size(key.second) : symbols_->describe(key.first);
}

HoldingLine line_of(std::uint32_t labelled,
                    const RunHistory& history,
                    const RuleFinder& rules,
                    Symbolizer* symbols) {
    const LabelledStack& found = history.requests.labelled_stacks[labelled];
    HoldingLine line;
    line.held.label = symbols->describe(found.origin);
    line.held.origin = found.origin;
    line.category = category_of(history.stacks[found.stack]);
    line.user_category =
        history.rules.empty() ? std::string_view() : rules.name_of(history.rules[labelled]);
    return line;
}

std::vector<HoldingLine> places_of(const std::vector<StackSum>& sums,
                                   const RunHistory& history,
                                   const RuleFinder& rules,
                                   Symbolizer* symbols) {
    Places places;
    for (const StackSum& sum : sums) {
        if (sum.bytes != 0) {
            HoldingLine line = line_of(sum.labelled, history, rules, symbols);
            line.held.bytes = sum.bytes;
            line.held.blocks = sum.blocks;
            places.add(line);
        }
    }
    std::vector<HoldingLine> rows = places.sorted();
    rows.resize(std::min(rows.size(), kMostPlaces));
    return rows;
}

Holders holders_of(const Timeline& timeline,
                   const HeapSnapshot& heap,
                   EventIndex event,
                   const RunHistory& history,
                   StackMarks* marks,
                   RuleFinder* rules,
                   Symbolizer* symbols) {
    Holders result;
    result.event = event;
    const Iterations& iterations = history.iterations;
    const std::size_t now = iterations.of(event);
    std::map<std::pair<Category, std::string_view>, Holding> sums;
    std::map<std::tuple<std::pair<OriginId, std::uint64_t>, Category, std::uint16_t>, HoldingLine>
        by_origin;
    const BlockLabels labels(timeline, heap, symbols);
    Places places;
    for (const HeapBlock& block : heap.blocks) {
        if (block.state != BlockState::kLive) {
            continue;
        }
        Category category = Category::kOther;
        std::uint16_t rule = block.allocated_by == kNoEvent ? rules->rule_of(0, category) : kNoRule;
        std::size_t born = 0;
        if (block.allocated_by != kNoEvent) {
            const auto request = request_of(history.requests, block.allocated_by);
            const OriginId origin = timeline.events[block.allocated_by].origin;
            if (request) {
                category = category_of(history.stacks[history.requests.stacks[*request]]);
                rule = history.rules.empty() ? kNoRule
                                             : history.rules[history.requests.labelled(*request)];
            } else {
                StackHistory told;
                told.marks = marks->of(origin);
                category = category_of(told);
                rule = rules->rule_of(origin, category);
            }
            born = iterations.of(block.allocated_by);
        }
        Holding& sum = sums[{category, rules->name_of(rule)}];
        sum.bytes += block.size_bytes;
        ++sum.blocks;
        sum.earlier_bytes += born < now ? block.size_bytes : 0;
        sum.old_bytes += born != 0 && born + 1 < now ? block.size_bytes : 0;
        result.allocated_bytes += block.size_bytes;
        by_origin[{labels.key_of(block), category, rule}].held.add(block.size_bytes, 1);
    }
    for (auto& [key, place] : by_origin) {
        const auto& [by_line, category, rule] = key;
        place.held.origin = by_line.first;
        place.held.label = labels.label_of(by_line);
        place.category = category;
        place.user_category = rules->name_of(rule);
        places.add(place);
    }
    for (auto& [key, sum] : sums) {
        sum.category = key.first;
        sum.user_category = key.second;
        result.categories.push_back(sum);
    }
    std::stable_sort(result.categories.begin(),
                     result.categories.end(),
                     [](const Holding& a, const Holding& b) { return a.bytes > b.bytes; });
    result.private_pools = private_pools_of(timeline, heap, symbols);
    result.places = places.sorted();
    result.places_left_out = result.places.size() - std::min(result.places.size(), kMostPlaces);
    result.places.resize(std::min(result.places.size(), kMostPlaces));
    return result;
}

std::vector<HeldBy> held_lines(const Timeline& timeline,
                               const HeapSnapshot& heap,
                               Symbolizer* symbols) {
    constexpr std::size_t kMostLines = 10;
    const BlockLabels labels(timeline, heap, symbols);
    std::map<std::pair<OriginId, std::uint64_t>, HeldBy> by_origin;
    for (const HeapBlock& block : heap.blocks) {
        if (block.state != BlockState::kFree) {
            by_origin[labels.key_of(block)].add(block.size_bytes, 1);
        }
    }
    std::map<std::string, HeldBy> by_label;
    for (const auto& [key, held] : by_origin) {
        std::string label = labels.label_of(key);
        HeldBy& line = by_label[label];
        line.label = std::move(label);
        line.add(held.bytes, held.blocks);
    }
    std::vector<HeldBy> lines;
    for (auto& [label, line] : by_label) {
        lines.push_back(std::move(line));
    }
    std::stable_sort(lines.begin(), lines.end(), [](const HeldBy& a, const HeldBy& b) {
        return a.bytes > b.bytes;
    });
    lines.resize(std::min(lines.size(), kMostLines));
    return lines;
}

IterationDifference difference_to_last_good(const Timeline& timeline,
                                            EventIndex event,
                                            const std::vector<EventIndex>& failed,
                                            const RunHistory& history,
                                            const RuleFinder& rules,
                                            Symbolizer* symbols) {
    IterationDifference result;
    const Iterations& iterations = history.iterations;
    const Requests& requests = history.requests;
    const std::size_t now = iterations.of(event);
    std::size_t good = now;
    const auto fails = [&](std::size_t iteration) {
        const auto next =
            std::lower_bound(failed.begin(), failed.end(), iterations.begins[iteration - 1]);
        return next != failed.end() && *next < iterations.begins[iteration];
    };
    while (good > 1 && (good == now || fails(good))) {
        --good;
    }
    if (now < 2 || good == now || fails(good)) {
        return result;
    }
    const std::size_t begin_at = first_request_from(requests, iterations.begins[now - 1]);
    const std::size_t event_at = first_request_from(requests, event);
    const std::size_t then_at = first_request_from(requests, iterations.begins[good - 1]);
    const std::size_t then_end = first_request_from(requests, iterations.begins[good]);
    if (event_at <= begin_at) {
        return result;
    }
    const auto place = same_place(history, begin_at, event_at - 1, then_at, then_end);
    if (!place) {
        return result;
    }
    result.iteration = now;
    result.against = good;
    result.event = event;
    result.place = requests.events[*place];
    std::vector<StackSum> sums(requests.labelled_stacks.size());
    for (std::uint32_t labelled = 0; labelled < sums.size(); ++labelled) {
        sums[labelled].labelled = labelled;
    }
    for (std::size_t i = 0; i < event_at; ++i) {
        const EventIndex born = requests.events[i];
        const EventIndex ended = timeline.partner[born];
        // Blocks that were live right after the request at the place.
        const int then = born <= result.place && ended > result.place ? 1 : 0;
        const int live = ended > event ? 1 : 0;
        const bool counts_now = i >= begin_at;
        const bool counts_then = i >= then_at && i <= *place;
        if (then == live && !counts_now && !counts_then) {
            continue;
        }
        const std::uint64_t size = allocated_bytes(timeline.events[born]);
        StackSum& sum = sums[requests.labelled(i)];
        sum.bytes += (live - then) * static_cast<std::int64_t>(size);
        sum.blocks += live - then;
        result.bytes += (live - then) * static_cast<std::int64_t>(size);
        result.asked_bytes += counts_now ? size : 0;
        result.asked_bytes_then += counts_then ? size : 0;
    }
    result.places = places_of(sums, history, rules, symbols);
    return result;
}

}  // namespace fragtrace::analyzer
