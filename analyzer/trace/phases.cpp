#include "analyzer/trace/phases.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {
namespace {

// Further phases are counted but not stored. So many names, or lanes without end, are of no use.
constexpr std::size_t kMostPhases = 1u << 20;
constexpr std::size_t kMostSearched = 1000;

class Phases {
  public:
    explicit Phases(Timeline* timeline) : timeline_(*timeline) {}

    void run(const std::vector<EventIndex>& remarks) {
        for (const EventIndex i : remarks) {
            switch (timeline_.events.kind(i)) {
                case EventKind::kRangeBegin:
                    begin(timeline_.events[i], i);
                    break;
                case EventKind::kRangeEnd:
                    end(timeline_.events[i], i);
                    break;
                case EventKind::kRecordingStopped:
                    end_all(i);
                    break;
                default:
                    break;
            }
        }
        end_all(static_cast<EventIndex>(timeline_.events.size()));
        if (dropped_ != 0) {
            timeline_.damage.notes.push_back(
                fmt::format("more than {} phases; {} are not shown", kMostPhases, dropped_));
        }
    }

  private:
    [[nodiscard]] std::uint32_t thread_of(const Event& event) const {
        return event.origin < timeline_.origins.size() ? timeline_.origins[event.origin].thread : 0;
    }

    void begin(const Event& event, EventIndex i) {
        if (timeline_.phases.size() >= kMostPhases) {
            ++dropped_;
            return;
        }
        const auto number = static_cast<std::uint32_t>(timeline_.phases.size());
        Phase phase;
        phase.name = static_cast<std::uint32_t>(event.size_bytes);
        phase.kind = static_cast<RangeKind>(event.extra);
        phase.thread = thread_of(event);
        phase.begin = i;
        phase.end = kNoEvent;
        std::vector<std::uint32_t>& open = open_[phase.thread];
        phase.depth = static_cast<std::uint32_t>(open.size());
        if (event.address == 0) {
            open.push_back(number);
        } else {
            by_id_[event.address] = number;  // a range whose id is reused ends with the trace
        }
        timeline_.phases.push_back(phase);
    }

    void end(const Event& event, EventIndex i) {
        if (event.address != 0) {
            const auto found = by_id_.find(event.address);
            if (found != by_id_.end()) {
                timeline_.phases[found->second].end = i;
                by_id_.erase(found);
            }
            return;
        }
        // Ends the thread's innermost range of that kind and, if the event has a name, of that
        // name.
        const auto thread = open_.find(thread_of(event));
        if (thread == open_.end()) {
            return;
        }
        std::vector<std::uint32_t>& open = thread->second;
        const std::size_t last = open.size() > kMostSearched ? open.size() - kMostSearched : 0;
        for (std::size_t at = open.size(); at-- > last;) {
            Phase& phase = timeline_.phases[open[at]];
            if (phase.kind == static_cast<RangeKind>(event.extra) &&
                (event.size_bytes == 0 || event.size_bytes == phase.name)) {
                phase.end = i;
                open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
                return;
            }
        }
    }

    void end_all(EventIndex i) {
        for (auto& [thread, open] : open_) {
            for (const std::uint32_t number : open) {
                timeline_.phases[number].end = i;
            }
            open.clear();
        }
        for (auto& [id, number] : by_id_) {
            timeline_.phases[number].end = i;
        }
        by_id_.clear();
        // A reused id left its first range open; that range ends here, too.
        if (i == timeline_.events.size()) {
            for (Phase& phase : timeline_.phases) {
                phase.end = std::min(phase.end, i);
            }
        }
    }

    Timeline& timeline_;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> open_;  // by thread
    std::unordered_map<std::uint64_t, std::uint32_t> by_id_;
    std::uint64_t dropped_ = 0;
};

}  // namespace

void find_phases(Timeline* timeline, const std::vector<EventIndex>& remarks) {
    Phases(timeline).run(remarks);
}

}  // namespace fragtrace::analyzer
