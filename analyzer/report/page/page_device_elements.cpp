#include "analyzer/report/page/page_device_elements.h"

#include "analyzer/support/threads.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <functional>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

using nlohmann::json;

constexpr std::size_t kBlocksPerChunk = 256 * 1024;

std::uint64_t last_time(const PageDevice& device) {
    std::uint64_t end = std::max<std::uint64_t>(1, device.end_ns);
    const auto reach = [&end](std::uint64_t time_ns) {
        if (time_ns != kNeverNs) end = std::max(end, time_ns);
    };
    for (const std::uint64_t time_ns : device.blocks.start_ns)
        reach(time_ns);
    for (const std::uint64_t time_ns : device.blocks.end_ns)
        reach(time_ns);
    for (const SegmentLife& segment : device.segments) {
        reach(segment.start_ns);
        reach(segment.end_ns);
    }
    for (const PageCard& card : device.cards)
        reach(card.time_ns);
    for (const PageMarker& marker : device.markers)
        reach(marker.time_ns);
    for (const PagePhase& phase : device.phases) {
        reach(phase.start_ns);
        reach(phase.end_ns);
    }
    return end;
}

// The smallest time unit with which 32 bits cover the whole trace: 1 ns up to 4 s, 1 us up to 71
// min.
std::uint64_t tick_for(std::uint64_t end_ns) {
    std::uint64_t tick_ns = 1;
    while (end_ns / tick_ns >= kNeverTick)
        tick_ns *= 10;
    return tick_ns;
}

// Calls `work` with 0 to count - 1, on one thread per processor.
void on_all_processors(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next = 0;
    const auto run = [&] {
        for (std::size_t i = next++; i < count; i = next++)
            work(i);
    };
    on_threads(std::min(count, processors()), run);
}

}  // namespace

DeviceElements::DeviceElements(const PageDevice& device,
                               std::size_t index,
                               const StackTables& stacks,
                               const DeviceRoom& room)
    : DeviceColumns(device, stacks, std::clamp<std::size_t>(rows_of(room), 16, 10'000)),
      room_(room),
      prefix_(fmt::format("ft-{}", index)) {
    end_ns_ = last_time(device_);
    tick_ns_ = tick_for(end_ns_);
    overview_ = make_overview(device_, axis_, end_ns_);
    find_named();
}

std::size_t DeviceElements::rows_of(const DeviceRoom& room) {
    constexpr std::size_t kRowBytes = 64;
    return room.bytes / 16 / kRowBytes;
}

const BytesOverTime& DeviceElements::side(std::size_t which) const {
    return *std::array{&device_.others, &device_.pinned, &device_.managed}[which];
}

Elements DeviceElements::overview() {
    // Each maker creates one element within a share of the room.
    const std::size_t part = room_.bytes / 16;
    const std::vector<std::function<Elements()>> makers = {
        [this] { return element("bins", bins()); },
        [this, part] { return small_map(4 * part); },
        [this, part] { return chosen_phases(part); },
        [this] { return element("curve_times", curve_times()); },
        [this, part] { return chosen_curves(part); },
        [this, part] { return chosen_side(0, part); },
        [this, part] { return chosen_side(1, part); },
        [this, part] { return chosen_side(2, part); }};
    std::vector<Elements> parts(makers.size());
    on_all_processors(makers.size(), [&](std::size_t i) { parts[i] = makers[i](); });
    Elements made;
    for (Elements& each : parts)
        made.add(std::move(each));
    made.add(chosen_units((room_.bytes - std::min(room_.bytes, made.size())) / 2));
    return made;
}

Elements DeviceElements::element(const std::string& name, const ColumnPack& pack) const {
    const std::string id = prefix_ + "-" + name;
    return {pack.element(id), json::array({json::parse(pack.describe(id))})};
}

// Blocks that cards name, and the units of these blocks, are left out last.
void DeviceElements::find_named() {
    named_blocks_.resize(device_.blocks.size());
    named_units_.resize(overview_.units.size());
    for (const PageCard& card : device_.cards) {
        for (const PageCulprit& culprit : card.culprits) {
            for (const std::uint32_t block : culprit.blocks) {
                named_blocks_[block] = true;
                const std::uint32_t unit = overview_.block_unit[block];
                if (unit != kNoUnit) named_units_[unit] = true;
            }
        }
    }
    for (const PageOverview::Span& span : overview_.spans) {
        if (named_blocks_[span.block]) named_units_[span.unit] = true;
    }
}

Elements DeviceElements::small_map(std::size_t room) {
    Elements made = element("map", map());
    while (made.size() > room && map_columns_ > 16) {
        for (auto* plane : {&overview_.in_use, &overview_.kept, &overview_.reserved})
            *plane = halved(*plane, map_columns_, map_rows_);
        map_columns_ /= 2;
        map_rows_ /= 2;
        made = element("map", map());
    }
    return made;
}

Elements DeviceElements::chosen_units(std::size_t room) {
    const std::vector<ReleaseUnit>& all = overview_.units;
    const auto weight = [&](std::uint32_t i) {
        return named_units_[i] ? kNeverNs : all[i].end_ns - all[i].start_ns;
    };
    return within(room, std::min(all.size(), room_.units), 0, [&](std::size_t most) {
        units_ = keep_rows(
            all.size(), most, [](std::uint32_t) { return true; }, weight);
        return element("units", units());
    });
}

Elements DeviceElements::chosen_phases(std::size_t room) {
    constexpr std::size_t kLeast = 16;
    return within(room, device_.phases.size(), kLeast, [&](std::size_t most) {
        std::vector<PagePhase> shown = device_.phases;
        limit_phases(&shown, std::max(most, kLeast));
        // Each name is stored once.
        std::unordered_map<std::string, std::uint32_t> ids;
        std::vector<std::uint32_t> name_of;
        json names = json::array();
        phases_merged_ = 0;
        for (const PagePhase& phase : shown) {
            phases_merged_ += phase.count > 1 ? phase.count : 0;
            const auto [found, fresh] =
                ids.try_emplace(phase.name, static_cast<std::uint32_t>(names.size()));
            if (fresh) names.push_back(shortened(phase.name, kMostNameBytes));
            name_of.push_back(found->second);
        }
        Elements made = element("phases", phases(shown, name_of));
        phase_names_ = names;
        made.names = std::move(names);
        return made;
    });
}

Elements DeviceElements::chosen_curves(std::size_t room) {
    const auto curves_given =
        std::count_if(device_.whatif.begin(), device_.whatif.end(), [](const PageWhatIf& row) {
            return !row.reserved_curve.empty();
        });
    return within(room, static_cast<std::size_t>(curves_given), 0, [&](std::size_t most) {
        curves_ = most;
        return element("curves", curves(most));
    });
}

// Memory beside the pool: every change, or the most within equal parts of the time.
Elements DeviceElements::chosen_side(std::size_t which, std::size_t room) {
    const BytesOverTime& memory = side(which);
    const std::size_t changes = memory.time_ns.size();
    return within(room, changes, 1, [&](std::size_t most) {
        const bool all = most >= changes;
        part_ns_[which] = all ? 0 : end_ns_ / most + 1;
        const std::string name = kSides[which].first;
        return element(name, over_time(all ? memory : most_of_parts(memory, most, end_ns_)));
    });
}

Elements DeviceElements::chosen_blocks(std::size_t room) {
    const BlockLives& all = device_.blocks;
    std::vector<bool> without_unit(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::uint32_t unit = overview_.block_unit[i];
        without_unit[i] = unit != kNoUnit && !units_.has(unit);
    }
    for (const PageOverview::Span& span : overview_.spans) {
        if (!units_.has(span.unit)) without_unit[span.block] = true;
    }
    const auto weight = [&](std::uint32_t i) {
        return named_blocks_[i] ? kNeverNs : all.end_ns[i] - all.start_ns[i];
    };
    return within(room, std::min(all.size(), room_.blocks), 0, [&](std::size_t most) {
        blocks_ = keep_rows(
            all.size(), most, [&](std::uint32_t i) { return !without_unit[i]; }, weight);
        const std::size_t chunks = (blocks_.rows.size() + kBlocksPerChunk - 1) / kBlocksPerChunk;
        std::vector<Elements> parts(chunks + 1);
        on_all_processors(parts.size(), [&](std::size_t i) {
            const std::size_t begin = i * kBlocksPerChunk;
            parts[i] =
                i == chunks
                    ? element("spans", spans())
                    : element(
                          fmt::format("blocks-{}", i),
                          blocks(begin, std::min(begin + kBlocksPerChunk, blocks_.rows.size())));
        });
        Elements made = std::move(parts.back());
        parts.pop_back();
        for (Elements& each : parts)
            made.add(std::move(each));
        return made;
    });
}

}  // namespace fragtrace::analyzer
