#include "analyzer/report/page/page_device.h"

#include "analyzer/report/page/page_device_elements.h"
#include "analyzer/report/page/page_header.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

using nlohmann::json;

class DeviceWriter : private DeviceElements {
  public:
    DeviceWriter(const PageDevice& device,
                 std::size_t index,
                 const StackTables& stacks,
                 const DeviceRoom& room)
        : DeviceElements(device, index, stacks, room) {}

    WrittenDevice write() {
        WrittenDevice written;
        Elements first = overview();
        written.header = header();
        const std::size_t used = first.size() + script_safe(written.header).size();
        Elements of_blocks = chosen_blocks(room_.bytes - std::min(room_.bytes, used));
        add_blocks(&written.header);
        first.packs.insert(first.packs.end(), of_blocks.packs.begin(), of_blocks.packs.end());
        written.header["packs"] = std::move(first.packs);
        written.header["notes"] = std::move(notes_);
        written.header_bytes = script_safe(written.header).size();
        written.overview = std::move(first.html);
        written.blocks = std::move(of_blocks.html);
        return written;
    }

  private:
    // All of the header except what depends on the choice of blocks.
    json header() {
        json made = device_header(device_, axis_);
        made["tick_ns"] = tick_ns_;
        made["end_ns"] = end_ns_;
        made["map"] = {map_columns_, map_rows_};
        const BlockLives& given = device_.blocks;
        made["first_start_ns"] = given.size() > 0 ? json(given.start_ns.front()) : json(nullptr);
        made["last_start_ns"] = given.size() > 0 ? json(given.start_ns.back()) : json(nullptr);
        made["phase_names"] = phase_names_;
        made["phases_merged"] = phases_merged_;
        made["segments_left_out"] = overview_.units.size() - units_.rows.size();
        for (std::size_t i = 0; i < kSides.size(); ++i)
            made["part_ns"][kSides[i].first] = part_ns_[i];
        note_overview();
        limit_lists(&made);
        renumber_stacks(&made);
        return made;
    }

    void note_left_out(const std::string& what,
                       std::uint64_t bytes,
                       std::uint64_t longest_ns,
                       const char* besides) {
        notes_.push_back(fmt::format(
            "This file leaves out {}, {} in all, that lived at most {}{}. The overview and every "
            "total include them. The state at the cursor, the search and the close-up pictures do "
            "not.",
            what,
            format_bytes(bytes),
            format_duration(longest_ns),
            besides));
    }

    void note_overview() {
        if (axis_.joined() != 0) {
            notes_.push_back(fmt::format(
                "The address axis has {}, {} in all, between neighbouring addresses that were "
                "reserved: all gaps have no room in the file.",
                format_counted(axis_.joined(), "gap", "gaps"),
                format_bytes(axis_.joined_bytes())));
        }
        if (map_columns_ < kMapColumns) {
            notes_.push_back(fmt::format(
                "The overview of the map has only {} × {} cells.", map_columns_, map_rows_));
        }
        for (std::size_t i = 0; i < kSides.size(); ++i) {
            if (part_ns_[i] == 0) continue;
            notes_.push_back(fmt::format(
                "{} changed {} times. The file has one value for each {}: the most within this "
                "time.",
                kSides[i].second,
                format_count(side(i).time_ns.size()),
                format_duration(part_ns_[i])));
        }
        if (const auto left = overview_.units.size() - units_.rows.size(); left != 0) {
            std::uint64_t bytes = 0;
            std::uint64_t longest_ns = 0;
            for (std::uint32_t i = 0; i < overview_.units.size(); ++i) {
                if (units_.has(i)) continue;
                const ReleaseUnit& unit = overview_.units[i];
                bytes += unit.size_bytes;
                longest_ns = std::max(longest_ns, std::min(unit.end_ns, end_ns_) - unit.start_ns);
            }
            note_left_out(
                format_counted(left, "segment", "segments") + " (of expandable ones: pages)",
                bytes,
                longest_ns,
                ", and the blocks in them");
        }
    }

    // Cuts lists of the header that grow with the trace.
    void limit_lists(json* header) {
        const std::size_t rows = most_rows();
        std::size_t curves = curves_;
        std::size_t without_curve = 0;
        for (json& row : (*header)["whatif"]) {
            if (!row["curve"].get<bool>()) continue;
            if (curves == 0) {
                row["curve"] = false;
                ++without_curve;
            } else {
                --curves;
            }
        }
        if (without_curve != 0) {
            notes_.push_back(
                fmt::format("{} of \"what if\" without a curve: the file has no room for {}.",
                            format_counted(without_curve, "row", "rows"),
                            without_curve == 1 ? "it" : "them"));
        }
        json& streams = (*header)["streams"];
        if (streams.size() > 2 * rows) {
            notes_.push_back(
                fmt::format("{} have a number instead of an address.",
                            format_counted(streams.size() - 2 * rows, "stream", "streams")));
            streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(2 * rows), streams.end());
        }
        std::vector<PagePool> pools = device_.pools;
        if (const std::size_t left = limit_changes(&pools, 2 * rows); left != 0) {
            notes_.push_back(fmt::format(
                "Private pools allowed or forbade the release of their segments {} times more "
                "than the file says. It leaves out the shortest times between.",
                format_count(left)));
        }
        if (pools.empty()) pools.emplace_back();
        json& shown = (*header)["pools"] = json::array();
        for (const PagePool& pool : pools)
            shown.push_back({{"name", pool.name}, {"changes_ns", pool.changes_ns}});
    }

    void renumber_stacks(json* header) {
        const auto renumber = [this](json& row) {
            row["stack"] = stacks_.node(row["stack"].get<std::uint32_t>());
        };
        for (json& card : (*header)["cards"]) {
            renumber(card);
            for (const char* rows : {"culprits", "holders"}) {
                for (json& row : card[rows])
                    renumber(row);
            }
        }
        for (json& row : (*header)["growth"]["rows"])
            renumber(row);
        json stacks = json::array();
        json categories = json::array();
        std::size_t left = 0;
        for (const PageStackCategory& of : device_.stack_categories) {
            if (stacks_.left_out(of.stack)) continue;
            if (stacks.size() >= 4 * most_rows()) {
                ++left;
                continue;
            }
            stacks.push_back(stacks_.node(of.stack));
            categories.push_back(of.category);
        }
        if (left != 0) {
            notes_.push_back(fmt::format("The file leaves out the category of {}.",
                                         format_counted(left, "stack", "stacks")));
        }
        (*header)["stack_categories"] = {{"stack", stacks}, {"category", categories}};
    }

    void add_blocks(json* header) {
        const BlockLives& all = device_.blocks;
        std::uint64_t left_out_bytes = 0;  // total over the run, not at one time
        std::uint64_t longest_ns = 0;
        std::unordered_set<std::uint32_t> other_stacks;
        std::uint64_t other_blocks = 0;
        std::uint64_t other_bytes = 0;
        for (std::uint32_t i = 0; i < all.size(); ++i) {
            if (!blocks_.has(i)) {
                left_out_bytes += all.size_bytes[i];
                const std::uint64_t end_ns = std::min(all.end_ns[i], end_ns_);
                longest_ns = std::max(longest_ns, end_ns - all.start_ns[i]);
            }
            if (stacks_.left_out(all.stack[i])) {
                other_stacks.insert(all.stack[i]);
                ++other_blocks;
                other_bytes += all.size_bytes[i];
            }
        }
        const std::size_t left = all.size() - blocks_.rows.size();
        (*header)["blocks"] = blocks_.rows.size();
        (*header)["blocks_left_out"] = left;
        (*header)["bytes_left_out"] = left_out_bytes;
        if (left != 0) {
            note_left_out(format_counted(left, "block", "blocks"), left_out_bytes, longest_ns, "");
        }
        if (!other_stacks.empty()) {
            notes_.push_back(fmt::format(
                "{}, with {} and {} allocated in all, are one stack without frames: \"other "
                "stacks\". The stacks with the most bytes × time have their frames.",
                format_counted(other_stacks.size(), "call stack", "call stacks"),
                format_counted(other_blocks, "block", "blocks"),
                format_bytes(other_bytes)));
        }
        std::size_t marks = most_rows() * 4;
        for (json& card : (*header)["cards"]) {
            for (json& culprit : card["culprits"]) {
                json renumbered = json::array();
                for (const json& block : culprit["blocks"]) {
                    const std::uint32_t place = blocks_.places[block.get<std::uint32_t>()];
                    if (place != KeptRows::kNone && marks > 0) {
                        renumbered.push_back(place);
                        --marks;
                    }
                }
                culprit["blocks"] = std::move(renumbered);
            }
        }
        if (marks == 0) {
            notes_.push_back(
                fmt::format("The pictures mark only the first {} blocks that the verdicts name.",
                            format_count(most_rows() * 4)));
        }
    }

    json notes_ = json::array();  // what the file leaves out
};

}  // namespace

WrittenDevice write_device(const PageDevice& device,
                           std::size_t index,
                           const StackTables& stacks,
                           const DeviceRoom& room) {
    return DeviceWriter(device, index, stacks, room).write();
}

}  // namespace fragtrace::analyzer
