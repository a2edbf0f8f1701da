// One sweep over all events of a device in order of time. It computes the unit of each block, the
// releasable share of reserved memory over time, and the three planes of the map.
#include "analyzer/report/page/page_overview.h"

#include "analyzer/model/release_unit.h"
#include "analyzer/report/page/page_bins.h"
#include "analyzer/report/page/page_coverage.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fragtrace::analyzer {
namespace {

// Order of events at the same time: events that free memory come before events that allocate it. A
// segment starts before its blocks and ends after them.
enum class Step : std::uint8_t {
    kBlockEnd,
    kSegmentEnd,
    kPoolChange,
    kSegmentStart,
    kBlockStart,
    kBlockFreed
};

struct SweepEvent {
    std::uint64_t time_ns;
    Step step;
    std::uint32_t index;
};

class Sweep {
  public:
    Sweep(const PageDevice& device, const AddressAxis& axis, std::uint64_t end_ns)
        : device_(device),
          axis_(axis),
          end_ns_(end_ns),
          bins_(device.others, end_ns),
          in_use_(kMapColumns, kMapRows),
          kept_(kMapColumns, kMapRows),
          reserved_(kMapColumns, kMapRows) {}

    PageOverview run() {
        make_units();
        result_.block_unit.assign(device_.blocks.size(), kNoUnit);
        for_events([this](const SweepEvent& event) {
            bins_.advance(event.time_ns, state_);
            apply(event);
        });
        bins_.advance(end_ns_, state_);
        for (std::uint32_t unit = 0; unit < result_.units.size(); ++unit) {
            if (result_.units[unit].end_ns == kNeverNs) close_kept(unit, end_ns_);
        }
        std::sort(result_.spans.begin(), result_.spans.end(), [](const auto& a, const auto& b) {
            return a.block != b.block ? a.block < b.block : a.unit < b.unit;
        });
        result_.bins = bins_.take();
        result_.in_use = in_use_.shares();
        result_.kept = kept_.shares();
        result_.reserved = reserved_.shares();
        return std::move(result_);
    }

  private:
    struct UnitState {
        bool present = false;
        std::uint32_t live = 0;  // blocks in it, also pending ones
        // Start of the time in which it is not releasable; kNeverNs = releasable.
        std::uint64_t since_ns = kNeverNs;
    };

    struct PoolState {
        bool released = false;
        std::vector<std::uint32_t> units;
    };

    void make_units() {
        for (std::uint32_t s = 0; s < device_.segments.size(); ++s) {
            const SegmentLife& segment = device_.segments[s];
            constexpr std::uint64_t kMostUnits = 1 << 20;  // 2 TiB of small pages
            const std::uint64_t unit = release_unit_bytes(segment.size_bytes, segment.page_bytes);
            const std::uint64_t step =
                unit == 0 || segment.size_bytes / unit > kMostUnits ? segment.size_bytes : unit;
            for (std::uint64_t at = 0; at < segment.size_bytes; at += step) {
                result_.units.push_back({segment.start_ns,
                                         segment.end_ns,
                                         segment.address + at,
                                         std::min(step, segment.size_bytes - at),
                                         s});
            }
        }
        std::sort(result_.units.begin(), result_.units.end(), [](const auto& a, const auto& b) {
            return a.address != b.address ? a.address < b.address : a.start_ns < b.start_ns;
        });
        unit_states_.resize(result_.units.size());
        pool_states_.resize(std::max<std::size_t>(1, device_.pools.size()));
        for (std::uint32_t unit = 0; unit < result_.units.size(); ++unit) {
            const std::uint32_t pool = pool_of(unit);
            if (pool != 0) pool_states_[pool].units.push_back(unit);
        }
    }

    static bool before(const SweepEvent& a, const SweepEvent& b) {
        if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
        return a.step != b.step ? a.step < b.step : a.index < b.index;
    }

    // All events except starts of blocks, which are already in order.
    std::vector<SweepEvent> events_besides_starts() const {
        const BlockLives& blocks = device_.blocks;
        std::vector<SweepEvent> events;
        events.reserve(blocks.size() + result_.units.size() * 2);
        for (std::uint32_t i = 0; i < result_.units.size(); ++i) {
            const ReleaseUnit& unit = result_.units[i];
            if (unit.end_ns <= unit.start_ns) continue;
            events.push_back({unit.start_ns, Step::kSegmentStart, i});
            if (unit.end_ns != kNeverNs) events.push_back({unit.end_ns, Step::kSegmentEnd, i});
        }
        for (std::uint32_t i = 0; i < blocks.size(); ++i) {
            if (blocks.end_ns[i] <= blocks.start_ns[i]) continue;
            if (blocks.freed_ns[i] < blocks.end_ns[i]) {
                events.push_back({blocks.freed_ns[i], Step::kBlockFreed, i});
            }
            if (blocks.end_ns[i] != kNeverNs) {
                events.push_back({blocks.end_ns[i], Step::kBlockEnd, i});
            }
        }
        for (std::uint32_t pool = 1; pool < device_.pools.size(); ++pool) {
            for (const std::uint64_t time_ns : device_.pools[pool].changes_ns) {
                events.push_back({time_ns, Step::kPoolChange, pool});
            }
        }
        std::sort(events.begin(), events.end(), before);
        return events;
    }

    // Calls visit() with every event in order.
    template <typename Visit>
    void for_events(Visit visit) {
        const BlockLives& blocks = device_.blocks;
        const std::vector<SweepEvent> others = events_besides_starts();
        auto other = others.begin();
        for (std::uint32_t i = 0; i < blocks.size(); ++i) {
            if (blocks.end_ns[i] <= blocks.start_ns[i]) continue;
            const SweepEvent start{blocks.start_ns[i], Step::kBlockStart, i};
            for (; other != others.end() && before(*other, start); ++other)
                visit(*other);
            visit(start);
        }
        for (; other != others.end(); ++other)
            visit(*other);
    }

    void apply(const SweepEvent& event) {
        switch (event.step) {
            case Step::kPoolChange:
                change_pool(event.index, event.time_ns);
                break;
            case Step::kSegmentStart:
                start_unit(event.index, event.time_ns);
                break;
            case Step::kSegmentEnd:
                end_unit(event.index, event.time_ns);
                break;
            case Step::kBlockStart:
                start_block(event.index, event.time_ns);
                break;
            case Step::kBlockFreed:
                free_block(event.index);
                break;
            case Step::kBlockEnd:
                end_block(event.index, event.time_ns);
                break;
        }
    }

    void start_unit(std::uint32_t index, std::uint64_t time_ns) {
        const ReleaseUnit& unit = result_.units[index];
        live_units_[unit.address] = index;
        state_.reserved += unit.size_bytes;
        state_.releasable += unit.size_bytes;
        unit_states_[index].present = true;
        judge(index, time_ns);
        draw(reserved_, unit.start_ns, unit.end_ns, unit.address, unit.size_bytes);
    }

    void end_unit(std::uint32_t index, std::uint64_t time_ns) {
        const ReleaseUnit& unit = result_.units[index];
        const auto found = live_units_.find(unit.address);
        if (found != live_units_.end() && found->second == index) live_units_.erase(found);
        state_.reserved -= unit.size_bytes;
        if (unit_states_[index].since_ns == kNeverNs) state_.releasable -= unit.size_bytes;
        close_kept(index, time_ns);
        unit_states_[index].present = false;
    }

    // A pool lost its last user, or has a user again.
    void change_pool(std::uint32_t pool, std::uint64_t time_ns) {
        PoolState& changed = pool_states_[pool];
        changed.released = !changed.released;
        for (const std::uint32_t unit : changed.units) {
            if (unit_states_[unit].present) judge(unit, time_ns);
        }
    }

    [[nodiscard]] std::uint32_t pool_of(std::uint32_t unit) const {
        return device_.segments[result_.units[unit].segment].pool;
    }

    // Counts a unit from this time on as releasable or as kept. Call it after each change.
    void judge(std::uint32_t index, std::uint64_t time_ns) {
        UnitState& state = unit_states_[index];
        const std::uint32_t pool = pool_of(index);
        const bool kept = state.live > 0 || pool_keeps_units(pool, pool_states_[pool].released);
        if (kept == (state.since_ns != kNeverNs)) return;
        if (kept) {
            state.since_ns = time_ns;
            state_.releasable -= result_.units[index].size_bytes;
        } else {
            close_kept(index, time_ns);
            state_.releasable += result_.units[index].size_bytes;
        }
    }

    void close_kept(std::uint32_t index, std::uint64_t time_ns) {
        UnitState& state = unit_states_[index];
        if (state.since_ns == kNeverNs) return;
        const ReleaseUnit& unit = result_.units[index];
        draw(kept_, state.since_ns, time_ns, unit.address, unit.size_bytes);
        state.since_ns = kNeverNs;
    }

    // Calls visit() with every live unit that overlaps [address, address + size), in ascending
    // order.
    template <typename Visit>
    void for_units(std::uint64_t address, std::uint64_t size_bytes, Visit visit) {
        auto at = live_units_.upper_bound(address);
        if (at != live_units_.begin()) --at;
        for (; at != live_units_.end() && at->first < address + size_bytes; ++at) {
            const ReleaseUnit& unit = result_.units[at->second];
            if (unit.address + unit.size_bytes > address) visit(at->second);
        }
    }

    void start_block(std::uint32_t index, std::uint64_t time_ns) {
        const BlockLives& blocks = device_.blocks;
        const std::uint64_t size_bytes = blocks.size_bytes[index];
        state_.active += size_bytes;
        state_.requested += known_request(index);
        bool first = true;
        for_units(blocks.address[index], size_bytes, [&](std::uint32_t unit) {
            if (first) {
                result_.block_unit[index] = unit;
            } else {
                result_.spans.push_back({index, unit});
            }
            first = false;
            ++unit_states_[unit].live;
            judge(unit, time_ns);
        });
        draw(in_use_,
             blocks.start_ns[index],
             blocks.end_ns[index],
             blocks.address[index],
             size_bytes);
    }

    // The program freed the block, but it is not reusable yet.
    void free_block(std::uint32_t index) {
        state_.pending += device_.blocks.size_bytes[index];
        state_.requested -= known_request(index);
    }

    void end_block(std::uint32_t index, std::uint64_t time_ns) {
        const BlockLives& blocks = device_.blocks;
        const std::uint64_t size_bytes = blocks.size_bytes[index];
        state_.active -= size_bytes;
        if (blocks.freed_ns[index] < blocks.end_ns[index]) {
            state_.pending -= size_bytes;
        } else {
            state_.requested -= known_request(index);
        }
        for_units(blocks.address[index], size_bytes, [&](std::uint32_t unit) {
            unit_states_[unit].live -= unit_states_[unit].live > 0 ? 1 : 0;
            judge(unit, time_ns);
        });
    }

    std::uint64_t known_request(std::uint32_t index) const {
        const std::uint64_t requested = device_.blocks.requested_bytes[index];
        return requested == kPageUnknown ? device_.blocks.size_bytes[index] : requested;
    }

    void draw(CoverageGrid& grid,
              std::uint64_t start_ns,
              std::uint64_t stop_ns,
              std::uint64_t address,
              std::uint64_t size_bytes) {
        const double across = static_cast<double>(kMapColumns) / static_cast<double>(end_ns_);
        const double up = static_cast<double>(kMapRows) / static_cast<double>(axis_.size_bytes());
        const auto bottom = static_cast<double>(axis_.offset_of(address));
        grid.add(static_cast<double>(start_ns) * across,
                 static_cast<double>(std::min(stop_ns, end_ns_)) * across,
                 bottom * up,
                 (bottom + static_cast<double>(size_bytes)) * up);
    }

    const PageDevice& device_;
    const AddressAxis& axis_;
    std::uint64_t end_ns_;
    PageOverview result_;
    std::vector<UnitState> unit_states_;
    std::vector<PoolState> pool_states_;
    std::map<std::uint64_t, std::uint32_t> live_units_;  // by address
    MemoryState state_;
    BinFiller bins_;
    CoverageGrid in_use_;
    CoverageGrid kept_;
    CoverageGrid reserved_;
};

}  // namespace

PageOverview make_overview(const PageDevice& device,
                           const AddressAxis& axis,
                           std::uint64_t end_ns) {
    return Sweep(device, axis, end_ns).run();
}

}  // namespace fragtrace::analyzer
