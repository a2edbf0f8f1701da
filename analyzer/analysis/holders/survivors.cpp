#include "analyzer/analysis/holders/survivors.h"

#include "analyzer/analysis/iterations/phase_names.h"
#include "analyzer/model/library_ranges.h"
#include "analyzer/model/phase_index.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostFailures = 16;
constexpr std::size_t kMostModels = 8;
constexpr std::size_t kMostRecurring = 8;
// A sequence of requests makes a new model if it requests at least this part of the largest earlier
// one: 1 / kPartOfAModel.
constexpr std::uint64_t kPartOfAModel = 4;
// Deeper phases are parts of something larger and are ignored.
constexpr std::uint32_t kDeepest = 2;

class Finder {
  public:
    Finder(const Timeline& timeline,
           const RunHistory& history,
           const RuleFinder& rules,
           Symbolizer* symbols)
        : timeline_(timeline),
          history_(history),
          rules_(rules),
          symbols_(symbols),
          library_(library_phases(timeline)) {}

    void failure(EventIndex failed) {
        const std::vector<EventIndex>& begins = history_.iterations.begins;
        const std::size_t iteration = history_.iterations.of(failed);
        Survivors found{.of = Survivors::Of::kOutOfMemory, .event = failed, .iteration = iteration};
        if (!history_.iterations.found()) {
            const std::optional<std::uint32_t> around = outermost(failed);
            const std::optional<std::uint32_t> next = around ? after(*around) : std::nullopt;
            if (next) {
                const Phase& phase = timeline_.phases[*around];
                found.phase = text_of(timeline_, phase.name);
                found.until = end_of(timeline_.phases[*next]);
                add(std::move(found), phase.begin, failed, [](std::uint32_t) { return true; });
            }
            return;
        }
        if (iteration == 0 || iteration + 2 > begins.size()) {
            return;
        }
        found.until = begins[iteration + 1];
        add(std::move(found), begins[iteration - 1], failed, [this](std::uint32_t stack) {
            const StackHistory& seen = history_.stacks[stack];
            return seen.ended_in_iteration > seen.outlived_iteration;
        });
    }

    // A new model is a sequence of requests that make modules, without a request in between that
    // uses a module.
    void models() {
        std::uint64_t largest = 0;
        std::size_t found = 0;
        const Requests& requests = history_.requests;
        for (std::size_t i = 0; i < requests.size() && found < kMostModels;) {
            if ((marks(i) & kMarkModuleMade) == 0) {
                ++i;
                continue;
            }
            const std::size_t begin = i;
            std::size_t last = i;
            std::uint64_t bytes = 0;
            constexpr unsigned kUses = kMarkModuleCalled | kMarkBackward | kMarkOptimizer;
            for (; i < requests.size() && (marks(i) & kUses) == 0; ++i) {
                if ((marks(i) & kMarkModuleMade) != 0) {
                    bytes += size_of(i);
                    last = i;
                }
            }
            if (largest != 0 && bytes >= largest / kPartOfAModel) {
                found += another_model(requests.events[begin], requests.events[last]) ? 1 : 0;
            }
            largest = std::max(largest, bytes);
        }
    }

    // Compares the last two runs of each phase that recurs, such as a cell or an epoch.
    void phases() {
        struct Runs {
            std::uint32_t before = PhaseIndex::kNone;
            std::uint32_t last = PhaseIndex::kNone;
        };

        std::map<std::pair<std::uint32_t, std::string>, Runs> recurring;
        std::map<std::uint32_t, std::string> names;
        for (std::uint32_t i = 0; i < timeline_.phases.size(); ++i) {
            const Phase& phase = timeline_.phases[i];
            if (library_[i] || phase.depth > kDeepest) {
                continue;
            }
            const auto [name, is_new] = names.try_emplace(phase.name);
            if (is_new) {
                name->second = without_numbers(text_of(timeline_, phase.name));
            }
            Runs& runs = recurring[{phase.thread, name->second}];
            if (runs.last == PhaseIndex::kNone || timeline_.phases[runs.last].end < phase.begin) {
                runs.before = std::exchange(runs.last, i);
            }
        }
        std::vector<Survivors> all;
        std::swap(all, found_);
        std::size_t budget = 8 * history_.requests.size();  // limits how many requests are examined
        for (const auto& [key, runs] : recurring) {
            // The phase of the iterations is skipped: memory that it leaves is reported as growth.
            if (runs.before != PhaseIndex::kNone && key.second != history_.iterations.phase) {
                earlier_run(key.second, runs.before, runs.last, &budget);
            }
        }
        std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
            return a.bytes > b.bytes;
        });
        found_.resize(std::min(found_.size(), kMostRecurring));
        all.insert(all.end(), found_.begin(), found_.end());
        std::swap(all, found_);
    }

    std::vector<Survivors> take() { return std::move(found_); }

  private:
    [[nodiscard]] unsigned marks(std::size_t request) const {
        return history_.stacks[history_.requests.stacks[request]].marks;
    }

    [[nodiscard]] std::uint64_t size_of(std::size_t request) const {
        return allocated_bytes(timeline_.events[history_.requests.events[request]]);
    }

    [[nodiscard]] EventIndex end_of(const Phase& phase) const {
        const auto count = static_cast<EventIndex>(timeline_.events.size());
        return std::min(phase.end, count - 1);
    }

    [[nodiscard]] std::size_t first_from(EventIndex event) const {
        const std::vector<EventIndex>& events = history_.requests.events;
        return static_cast<std::size_t>(std::lower_bound(events.begin(), events.end(), event) -
                                        events.begin());
    }

    // The least deep phase around an event; the first one of several.
    [[nodiscard]] std::optional<std::uint32_t> outermost(EventIndex event) const {
        std::optional<std::uint32_t> best;
        for (std::uint32_t i = 0; i < timeline_.phases.size(); ++i) {
            const Phase& phase = timeline_.phases[i];
            if (!library_[i] && phase.begin <= event && event <= phase.end &&
                (!best || phase.depth < timeline_.phases[*best].depth)) {
                best = i;
            }
        }
        return best;
    }

    // The next phase of the same thread, no deeper, that began after the end of this one.
    [[nodiscard]] std::optional<std::uint32_t> after(std::uint32_t number) const {
        const Phase& over = timeline_.phases[number];
        for (std::uint32_t i = number + 1; i < timeline_.phases.size(); ++i) {
            const Phase& phase = timeline_.phases[i];
            if (!library_[i] && phase.thread == over.thread && phase.begin > over.end &&
                phase.depth <= over.depth) {
                return i;
            }
        }
        return std::nullopt;
    }

    // Whether a whole step after the creation requested no state for an optimizer, although the
    // optimizer of the earlier model has some: the new model is a copy that is not trained (an
    // average of the weights, a teacher), and the earlier one is still in use.
    [[nodiscard]] bool only_a_copy(EventIndex first, EventIndex last, EventIndex until) const {
        constexpr std::uint64_t kSmallPart = 4;
        const Requests& requests = history_.requests;
        std::uint64_t before = 0;
        std::uint64_t since = 0;
        for (std::size_t i = 0; i < requests.size() && requests.events[i] < until; ++i) {
            if (category_of(history_.stacks[requests.stacks[i]]) != Category::kOptimizerState) {
                continue;
            }
            if (requests.events[i] > last) {
                since += size_of(i);
            } else if (requests.events[i] < first &&
                       timeline_.partner[requests.events[i]] > until) {
                before += size_of(i);
            }
        }
        return since < before / kSmallPart;
    }

    bool another_model(EventIndex first, EventIndex last) {
        const std::vector<EventIndex>& begins = history_.iterations.begins;
        const std::size_t made_in = history_.iterations.of(last);
        Survivors found{.of = Survivors::Of::kModel,
                        .event = first,
                        .iteration = history_.iterations.of(first)};
        // The old model may be needed while the new one is made. So report what is still live one
        // step after the new model's first use, or at the end of the recording.
        found.until = made_in + 1 < begins.size()
                          ? begins[made_in + 1]
                          : static_cast<EventIndex>(timeline_.events.size() - 1);
        if (made_in + 1 < begins.size() && only_a_copy(first, last, found.until)) {
            return false;
        }
        return add(std::move(found), 0, first, [this](std::uint32_t stack) {
            switch (category_of(history_.stacks[stack])) {
                case Category::kParameters:
                case Category::kGradients:
                case Category::kOptimizerState:
                case Category::kActivations:
                    return true;
                default:
                    return false;
            }
        });
    }

    // Reports blocks of the earlier run whose stacks requested memory again in the later run.
    void earlier_run(const std::string& name,
                     std::uint32_t before,
                     std::uint32_t last,
                     std::size_t* budget) {
        const Phase& earlier = timeline_.phases[before];
        const Phase& later = timeline_.phases[last];
        const std::size_t begin = first_from(later.begin);
        const std::size_t end = first_from(end_of(later));
        const std::size_t looked_at =
            end - begin + first_from(end_of(earlier)) - first_from(earlier.begin);
        if (looked_at > *budget) {
            return;
        }
        *budget -= looked_at;
        std::vector<std::uint32_t> again(
            history_.requests.stacks.begin() + static_cast<std::ptrdiff_t>(begin),
            history_.requests.stacks.begin() + static_cast<std::ptrdiff_t>(end));
        std::sort(again.begin(), again.end());
        Survivors found{.of = Survivors::Of::kPhase,
                        .event = end_of(earlier),
                        .iteration = history_.iterations.of(earlier.begin),
                        .phase = name,
                        .until = end_of(later)};
        add(std::move(found), earlier.begin, end_of(earlier), [&again](std::uint32_t stack) {
            return std::binary_search(again.begin(), again.end(), stack);
        });
    }

    // Reports blocks that were requested in [from, to), are live after `until`, and whose stack
    // passes `counts`. False if there are none.
    template <typename Counts>
    bool add(Survivors found, EventIndex from, EventIndex to, Counts counts) {
        const Requests& requests = history_.requests;
        std::map<std::uint32_t, StackSum> held;  // per stack and label
        for (std::size_t i = first_from(from); i < requests.size() && requests.events[i] < to;
             ++i) {
            const std::uint32_t stack = requests.stacks[i];
            if (timeline_.partner[requests.events[i]] > found.until && counts(stack)) {
                StackSum& sum = held[requests.labelled(i)];
                sum.labelled = requests.labelled(i);
                // Unsigned arithmetic, since a forged trace may allocate more than 2^63 bytes.
                sum.bytes =
                    static_cast<std::int64_t>(static_cast<std::uint64_t>(sum.bytes) + size_of(i));
                ++sum.blocks;
                found.bytes += size_of(i);
            }
        }
        if (found.bytes == 0) {
            return false;
        }
        std::vector<StackSum> sums;  // only stacks with blocks: thousands of phases may recur
        for (const auto& [labelled, sum] : held) {
            sums.push_back(sum);
        }
        found.places = places_of(sums, history_, rules_, symbols_);
        found_.push_back(std::move(found));
        return true;
    }

    const Timeline& timeline_;
    const RunHistory& history_;
    const RuleFinder& rules_;
    Symbolizer* symbols_;
    std::vector<bool> library_;
    std::vector<Survivors> found_;
};

}  // namespace

std::vector<Survivors> survivors_of(const Timeline& timeline,
                                    const std::vector<EventIndex>& failed,
                                    const RunHistory& history,
                                    const RuleFinder& rules,
                                    Symbolizer* symbols) {
    if (timeline.events.size() == 0) {
        return {};
    }
    Finder finder(timeline, history, rules, symbols);
    for (std::size_t i = 0; i < std::min(failed.size(), kMostFailures); ++i) {
        finder.failure(failed[i]);
    }
    finder.models();
    finder.phases();
    return finder.take();
}

}  // namespace fragtrace::analyzer
