#include "analyzer/report/page/page_stack_tables.h"

#include "analyzer/report/page/page_limits.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using nlohmann::json;

constexpr std::size_t kNodeBytes = 3 * 8;   // numbers of up to seven digits, and commas
constexpr std::size_t kFrameBytes = 6 * 8;  // two of them small
constexpr std::size_t kOtherBytes = 200;    // the node, frame and name of other stacks

std::array<const std::string*, 4> texts_of(const PageFrame& frame) {
    return {&frame.function, &frame.file, &frame.label, &frame.library};
}

}  // namespace

std::size_t StringTable::id(const std::string& text) {
    const auto [found, added] = ids_.try_emplace(shortened(text, kMostNameBytes), texts_.size());
    if (added) texts_.push_back(found->first);
    return found->second;
}

bool StringTable::contains(const std::string& text) const {
    return ids_.contains(text);
}

std::size_t StackTables::bytes_of_text(const std::string& text) const {
    return strings_.contains(text) ? 0 : json_bytes(shortened(text, kMostNameBytes)) + 1;
}

// Of a frame that the file does not contain yet. A text that two of its columns share counts twice.
std::size_t StackTables::bytes_of_frame(const PageFrame& frame) const {
    std::size_t bytes = kFrameBytes;
    for (const std::string* text : texts_of(frame))
        bytes += bytes_of_text(*text);
    return bytes;
}

// Of all stacks that the file does not contain yet.
std::size_t StackTables::bytes_of_all(const PageData& data) const {
    std::size_t bytes = 0;
    for (const std::uint32_t place : places_)
        bytes += place == kNone ? kNodeBytes : 0;
    std::unordered_set<std::string_view> seen;
    for (std::size_t i = 0; i < data.frames.size(); ++i) {
        if (frame_places_[i] != kNone) continue;
        bytes += kFrameBytes;
        for (const std::string* text : texts_of(data.frames[i])) {
            if (seen.insert(*text).second) bytes += bytes_of_text(*text);
        }
    }
    return bytes;
}

// The stacks of the devices that the file does not contain yet: those that a table names, then
// those with the most bytes x time.
std::vector<std::uint32_t> StackTables::most_first(const PageData& data) const {
    constexpr double kNamed = 1e300;
    std::vector<double> weight(places_.size());
    const auto name = [&](std::uint32_t stack) {
        if (stack < weight.size()) weight[stack] = kNamed;
    };
    for (const PageDevice& device : data.devices) {
        const BlockLives& blocks = device.blocks;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            const std::uint64_t end_ns = std::min(blocks.end_ns[i], device.end_ns);
            const std::uint64_t life_ns = end_ns - std::min(end_ns, blocks.start_ns[i]) + 1;
            weight[blocks.stack[i]] +=
                static_cast<double>(blocks.size_bytes[i]) * static_cast<double>(life_ns);
        }
        for (const PageCard& card : device.cards) {
            name(card.stack);
            for (const PageCulprit& culprit : card.culprits)
                name(culprit.stack);
            for (const PageHolder& holder : card.holders)
                name(holder.stack);
        }
        for (const PageGrowingLine& line : device.growing)
            name(line.stack);
    }
    std::vector<std::uint32_t> order;
    for (std::uint32_t stack = 0; stack < weight.size(); ++stack) {
        if (weight[stack] > 0 && places_[stack] == kNone) order.push_back(stack);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return weight[a] > weight[b];
    });
    return order;
}

std::uint32_t StackTables::add_frame(const PageFrame& frame) {
    bytes_ += bytes_of_frame(frame);
    frames_.push_back({strings_.id(frame.function),
                       strings_.id(frame.file),
                       frame.line,
                       frame.python,
                       strings_.id(frame.label),
                       strings_.id(frame.library)});
    return static_cast<std::uint32_t>(frames_.size() - 1);
}

// The parent must have been added.
void StackTables::add_node(const PageData& data, std::uint32_t stack) {
    const PageStackNode& node = data.stacks[stack];
    if (frame_places_[node.frame] == kNone) {
        frame_places_[node.frame] = add_frame(data.frames[node.frame]);
    }
    places_[stack] = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(
        {stack == 0 ? 0 : places_[node.parent], frame_places_[node.frame], node.telling});
    bytes_ += kNodeBytes;
}

void StackTables::add(const PageData& data, std::size_t room) {
    places_.resize(data.stacks.size(), kNone);
    frame_places_.resize(data.frames.size(), kNone);
    if (places_.empty()) return;
    std::vector<bool> wanted(places_.size(), bytes_of_all(data) <= room);
    if (!wanted[0]) {
        wanted[0] = true;
        std::vector<bool> counted(frame_places_.size());  // frames of wanted stacks
        std::size_t used = kOtherBytes;
        std::vector<std::uint32_t> more;  // nodes between the stack and those that are wanted
        for (const std::uint32_t stack : most_first(data)) {
            more.clear();
            std::size_t bytes = 0;
            for (std::uint32_t at = stack; !wanted[at] && places_[at] == kNone;
                 at = data.stacks[at].parent) {
                const std::uint32_t frame = data.stacks[at].frame;
                const bool fresh = frame_places_[frame] == kNone && !counted[frame];
                bytes += kNodeBytes + (fresh ? bytes_of_frame(data.frames[frame]) : 0);
                more.push_back(at);
            }
            if (used + bytes > room) {
                ++others_;
                continue;
            }
            used += bytes;
            for (const std::uint32_t at : more) {
                wanted[at] = true;
                counted[data.stacks[at].frame] = true;
            }
        }
        if (others_ != 0 && other_ == 0) {
            if (places_[0] == kNone) add_node(data, 0);
            const std::uint32_t frame = add_frame({});
            other_ = static_cast<std::uint32_t>(nodes_.size());
            nodes_.push_back({0, frame, 0});
            bytes_ += kNodeBytes;
        }
    }
    for (std::uint32_t stack = 0; stack < places_.size(); ++stack) {
        if (wanted[stack] && places_[stack] == kNone) add_node(data, stack);
    }
}

void StackTables::write(json& header) {
    if (other_ != 0) {
        FrameRow& frame = frames_[nodes_[other_].frame];
        frame.label = strings_.id(format_counted(others_, "other stack", "other stacks"));
        frame.function = frame.label;
    }
    const auto column = [](const auto& rows, auto member) {
        json values = json::array();
        for (const auto& row : rows)
            values.push_back(row.*member);
        return values;
    };
    json python = json::array();
    for (const FrameRow& frame : frames_)
        python.push_back(frame.python ? 1 : 0);
    header["frames"] = {{"function", column(frames_, &FrameRow::function)},
                        {"file", column(frames_, &FrameRow::file)},
                        {"line", column(frames_, &FrameRow::line)},
                        {"python", std::move(python)},
                        {"label", column(frames_, &FrameRow::label)},
                        {"library", column(frames_, &FrameRow::library)}};
    header["stacks"] = {{"parent", column(nodes_, &Node::parent)},
                        {"frame", column(nodes_, &Node::frame)},
                        {"telling", column(nodes_, &Node::telling)}};
    header["strings"] = strings_.texts();
}

}  // namespace fragtrace::analyzer
