#include "analyzer/report/page/page_device.h"

#include "analyzer/report/page/page_columns.h"
#include "analyzer/report/page/page_header.h"
#include "analyzer/report/page/page_overview.h"
#include "analyzer/support/threads.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

using nlohmann::json;

constexpr std::size_t kBlocksPerChunk = 256 * 1024;
constexpr std::uint32_t kNeverTick = 0xffffffffu;

// The page counts memory without a known stream to the default stream.
StreamId shown_stream(StreamId stream) {
    return stream == kNoStream ? StreamId{0} : stream;
}

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

class DeviceWriter {
  public:
    DeviceWriter(const PageDevice& device, std::size_t index, std::size_t budget)
        : device_(device), prefix_(fmt::format("ft-{}", index)), axis_(device), budget_(budget) {}

    WrittenDevice write() {
        end_ns_ = last_time(device_);
        tick_ns_ = tick_for(end_ns_);
        overview_ = make_overview(device_, axis_, end_ns_);
        choose_blocks();
        json header = device_header(device_, axis_);
        header["tick_ns"] = tick_ns_;
        header["end_ns"] = end_ns_;
        header["blocks"] = kept_.size();
        header["blocks_left_out"] = device_.blocks.size() - kept_.size();
        header["bytes_left_out"] = bytes_left_out_;
        header["longest_left_out_ns"] = longest_left_out_ns_;
        header["map"] = {kMapColumns, kMapRows};
        renumber_culprits(header);
        const BlockLives& given = device_.blocks;
        header["first_start_ns"] = given.size() > 0 ? json(given.start_ns.front()) : json(nullptr);
        header["last_start_ns"] = given.size() > 0 ? json(given.start_ns.back()) : json(nullptr);
        header["phase_names"] = name_phases();
        header["pools"] = pools();
        // Each maker creates one element. The first ones are for the overview.
        std::vector<std::pair<std::string, std::function<ColumnPack()>>> makers = {
            {"bins", [this] { return bins(); }},
            {"map", [this] { return map(); }},
            {"units", [this] { return units(); }},
            {"phases", [this] { return phases(); }},
            {"curve_times", [this] { return curve_times(); }},
            {"curves", [this] { return curves(); }},
            {"others", [this] { return over_time(device_.others); }},
            {"pinned", [this] { return over_time(device_.pinned); }},
            {"managed", [this] { return over_time(device_.managed); }},
            {"spans", [this] { return spans(); }}};
        constexpr std::size_t kOverviewPacks = 9;
        for (std::size_t begin = 0; begin < kept_.size(); begin += kBlocksPerChunk) {
            const std::size_t end = std::min(begin + kBlocksPerChunk, kept_.size());
            makers.emplace_back(fmt::format("blocks-{}", begin / kBlocksPerChunk),
                                [this, begin, end] { return blocks(begin, end); });
        }
        std::vector<std::string> elements(makers.size());
        std::vector<std::string> descriptions(makers.size());
        on_all_processors(makers.size(), [&](std::size_t i) {
            const std::string id = prefix_ + "-" + makers[i].first;
            const ColumnPack pack = makers[i].second();
            descriptions[i] = pack.describe(id);
            elements[i] = pack.element(id);
        });
        WrittenDevice written;
        json packs = json::array();
        for (std::size_t i = 0; i < makers.size(); ++i) {
            packs.push_back(json::parse(descriptions[i]));
            (i < kOverviewPacks ? written.overview : written.blocks) += elements[i];
            elements[i] = {};
        }
        header["packs"] = std::move(packs);
        written.header = std::move(header);
        return written;
    }

  private:
    [[nodiscard]] std::uint64_t tick(std::uint64_t time_ns) const {
        return time_ns == kNeverNs ? kNeverTick : time_ns / tick_ns_;
    }

    // If there are more blocks than the budget, keep the longest-lived blocks and those that cards
    // refer to.
    void choose_blocks() {
        const BlockLives& blocks = device_.blocks;
        kept_.resize(blocks.size());
        std::iota(kept_.begin(), kept_.end(), 0u);
        if (kept_.size() > budget_) {
            std::vector<bool> named(blocks.size());
            for (const PageCard& card : device_.cards) {
                for (const PageCulprit& culprit : card.culprits) {
                    for (const std::uint32_t block : culprit.blocks)
                        named[block] = true;
                }
            }
            const auto weight = [&](std::uint32_t i) {
                return named[i] ? kNeverNs : blocks.end_ns[i] - blocks.start_ns[i];
            };
            const auto cut = kept_.begin() + static_cast<std::ptrdiff_t>(budget_);
            std::nth_element(
                kept_.begin(), cut, kept_.end(), [&](std::uint32_t a, std::uint32_t b) {
                    return weight(a) != weight(b) ? weight(a) > weight(b) : a < b;
                });
            for (auto left_out = cut; left_out != kept_.end(); ++left_out) {
                longest_left_out_ns_ = std::max(longest_left_out_ns_, weight(*left_out));
                bytes_left_out_ += blocks.size_bytes[*left_out];
            }
            kept_.resize(budget_);
            std::sort(kept_.begin(), kept_.end());
        }
        new_index_.assign(blocks.size(), kNoUnit);
        for (std::uint32_t i = 0; i < kept_.size(); ++i)
            new_index_[kept_[i]] = i;
    }

    void renumber_culprits(json& header) const {
        for (json& card : header["cards"]) {
            for (json& culprit : card["culprits"]) {
                json renumbered = json::array();
                for (const json& block : culprit["blocks"]) {
                    const std::uint32_t index = new_index_[block.get<std::uint32_t>()];
                    if (index != kNoUnit) renumbered.push_back(index);
                }
                culprit["blocks"] = std::move(renumbered);
            }
        }
    }

    [[nodiscard]] json pools() const {
        json pools = json::array();
        for (const PagePool& pool : device_.pools) {
            pools.push_back({{"name", pool.name}, {"changes_ns", pool.changes_ns}});
        }
        if (pools.empty()) pools.push_back({{"name", ""}, {"changes_ns", json::array()}});
        return pools;
    }

    [[nodiscard]] ColumnPack bins() const {
        const std::vector<PageBin>& bins = overview_.bins;
        ColumnPack pack(bins.size());
        const auto add = [&](const char* name, auto member) {
            pack.add(name, 6, true, [&bins, member](std::size_t i) {
                return to_count(static_cast<double>(bins[i].*member));
            });
        };
        add("requested", &PageBin::requested);
        add("internal", &PageBin::internal);
        add("pending", &PageBin::pending);
        add("held", &PageBin::held);
        add("releasable", &PageBin::releasable);
        add("other", &PageBin::other);
        add("allocated_max", &PageBin::allocated_max);
        add("allocated_min", &PageBin::allocated_min);
        add("reserved_max", &PageBin::reserved_max);
        return pack;
    }

    [[nodiscard]] ColumnPack map() const {
        ColumnPack pack(kMapColumns * kMapRows);
        pack.add("in_use", 1, true, [this](std::size_t i) { return overview_.in_use[i]; });
        pack.add("kept", 1, true, [this](std::size_t i) { return overview_.kept[i]; });
        pack.add("reserved", 1, true, [this](std::size_t i) { return overview_.reserved[i]; });
        return pack;
    }

    [[nodiscard]] ColumnPack units() const {
        const std::vector<ReleaseUnit>& units = overview_.units;
        const auto segment = [&](std::size_t i) -> const SegmentLife& {
            return device_.segments[units[i].segment];
        };
        ColumnPack pack(units.size());
        pack.add("start", 4, false, [&](std::size_t i) { return tick(units[i].start_ns); });
        pack.add("end", 4, false, [&](std::size_t i) { return tick(units[i].end_ns); });
        pack.add(
            "offset", 6, true, [&](std::size_t i) { return axis_.offset_of(units[i].address); });
        pack.add("size", 6, true, [&](std::size_t i) { return units[i].size_bytes; });
        pack.add("pool", 4, false, [&](std::size_t i) { return segment(i).pool; });
        pack.add(
            "stream", 2, false, [&](std::size_t i) { return shown_stream(segment(i).stream); });
        pack.add("small", 1, false, [&](std::size_t i) { return segment(i).small ? 1u : 0u; });
        return pack;
    }

    [[nodiscard]] ColumnPack over_time(const BytesOverTime& memory) const {
        ColumnPack pack(memory.time_ns.size());
        pack.add("time", 4, true, [&](std::size_t i) { return tick(memory.time_ns[i]); });
        pack.add("bytes", 6, true, [&](std::size_t i) { return memory.bytes[i]; });
        return pack;
    }

    [[nodiscard]] ColumnPack spans() const {
        std::vector<PageOverview::Span> spans;
        for (const PageOverview::Span& span : overview_.spans) {
            if (new_index_[span.block] != kNoUnit) {
                spans.push_back({new_index_[span.block], span.unit});
            }
        }
        ColumnPack pack(spans.size());
        pack.add("block", 4, true, [&](std::size_t i) { return spans[i].block; });
        pack.add("unit", 4, true, [&](std::size_t i) { return spans[i].unit; });
        return pack;
    }

    // Stores each name once. phase_name_ is the index of each phase's name.
    json name_phases() {
        std::unordered_map<std::string, std::uint32_t> ids;
        json names = json::array();
        for (const PagePhase& phase : device_.phases) {
            const auto [found, fresh] =
                ids.try_emplace(phase.name, static_cast<std::uint32_t>(names.size()));
            if (fresh) names.push_back(phase.name);
            phase_name_.push_back(found->second);
        }
        return names;
    }

    [[nodiscard]] ColumnPack phases() const {
        const std::vector<PagePhase>& phases = device_.phases;
        ColumnPack pack(phases.size());
        pack.add("start", 4, true, [&](std::size_t i) { return tick(phases[i].start_ns); });
        pack.add("end", 4, false, [&](std::size_t i) { return tick(phases[i].end_ns); });
        pack.add("name", 4, false, [&](std::size_t i) { return phase_name_[i]; });
        pack.add("lane", 1, false, [&](std::size_t i) { return phases[i].lane; });
        pack.add("ranges", 4, false, [&](std::size_t i) { return phases[i].count; });
        return pack;
    }

    [[nodiscard]] ColumnPack curve_times() const {
        const std::vector<std::uint64_t>& times = device_.curve_times_ns;
        ColumnPack pack(times.size());
        pack.add("time", 4, true, [&](std::size_t i) { return tick(times[i]); });
        return pack;
    }

    // All curves, one after the other. Rows without a curve are skipped.
    [[nodiscard]] ColumnPack curves() const {
        std::vector<std::uint64_t> reserved;
        for (const PageWhatIf& row : device_.whatif) {
            reserved.insert(reserved.end(), row.reserved_curve.begin(), row.reserved_curve.end());
        }
        ColumnPack pack(reserved.size());
        pack.add("reserved", 6, true, [&](std::size_t i) { return reserved[i]; });
        return pack;
    }

    [[nodiscard]] ColumnPack blocks(std::size_t begin, std::size_t end) const {
        const BlockLives& blocks = device_.blocks;
        const auto at = [&](std::size_t row) { return kept_[begin + row]; };
        const auto unit_offset = [&](std::uint32_t i) {
            const std::uint32_t unit = overview_.block_unit[i];
            return unit == kNoUnit ? 0 : axis_.offset_of(overview_.units[unit].address);
        };
        ColumnPack pack(end - begin);
        pack.add("start", 4, true, [&](std::size_t r) { return tick(blocks.start_ns[at(r)]); });
        pack.add("held", 4, false, [&](std::size_t r) {
            const std::uint64_t freed_ns = blocks.freed_ns[at(r)];
            return freed_ns == kNeverNs ? kNeverTick
                                        : tick(freed_ns) - tick(blocks.start_ns[at(r)]);
        });
        pack.add("pending", 4, false, [&](std::size_t r) -> std::uint64_t {
            const std::uint64_t freed_ns = blocks.freed_ns[at(r)];
            const std::uint64_t end_ns = blocks.end_ns[at(r)];
            if (freed_ns == kNeverNs || end_ns <= freed_ns) return 0;
            return end_ns == kNeverNs ? kNeverTick : tick(end_ns) - tick(freed_ns);
        });
        pack.add("unit", 4, false, [&](std::size_t r) { return overview_.block_unit[at(r)]; });
        pack.add("offset", 6, false, [&](std::size_t r) {
            return axis_.offset_of(blocks.address[at(r)]) - unit_offset(at(r));
        });
        pack.add("size", 6, false, [&](std::size_t r) { return blocks.size_bytes[at(r)]; });
        // Block size minus requested size; 2^48 - 1 = unknown.
        pack.add("excess", 6, false, [&](std::size_t r) -> std::uint64_t {
            const std::uint64_t requested = blocks.requested_bytes[at(r)];
            const std::uint64_t size_bytes = blocks.size_bytes[at(r)];
            return requested > size_bytes ? kPageUnknown : size_bytes - requested;
        });
        pack.add("stack", 4, false, [&](std::size_t r) { return blocks.stack[at(r)]; });
        pack.add(
            "stream", 2, false, [&](std::size_t r) { return shown_stream(blocks.stream[at(r)]); });
        return pack;
    }

    const PageDevice& device_;
    std::string prefix_;
    AddressAxis axis_;
    std::size_t budget_;
    std::uint64_t end_ns_ = 1;
    std::uint64_t tick_ns_ = 1;
    std::uint64_t longest_left_out_ns_ = 0;
    std::uint64_t bytes_left_out_ = 0;  // total over the run, not at one time
    PageOverview overview_;
    std::vector<std::uint32_t> kept_;        // rows of the file: indices of the input blocks
    std::vector<std::uint32_t> new_index_;   // inverse of kept_; kNoUnit = omitted
    std::vector<std::uint32_t> phase_name_;  // per phase: index into the header's names
};

}  // namespace

WrittenDevice write_device(const PageDevice& device, std::size_t index, std::size_t block_budget) {
    return DeviceWriter(device, index, block_budget).write();
}

}  // namespace fragtrace::analyzer
