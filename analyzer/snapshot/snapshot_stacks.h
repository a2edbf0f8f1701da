// Interns the frames and stacks of a snapshot: codes, lines, and the tree of stacks of a Timeline.
//
// Most lists of frames in a history repeat an earlier one; a hash of the whole list finds it. Not
// thread-safe.
#pragma once

#include "analyzer/model/pair_map.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

class SnapshotStacks {
  public:
    static constexpr std::uint32_t kMostFrames = 1u << 24;
    static constexpr std::uint32_t kMostNodes = 1u << 26;
    static constexpr std::uint32_t kFull = PairMap::kAbsent;

    SnapshotStacks() { nodes_.push_back({}); }

    struct FrameKey {
        std::uint32_t function;  // the number of its text
        std::uint32_t file;      // the number of its text
        std::uint32_t line;
        bool native;  // false: not known
    };

    // Returns the number of a frame; kFull if the table is full.
    std::uint32_t frame(const FrameKey& key,
                        std::string_view function_text,
                        std::string_view file_text);

    // Returns the node of a stack, given its frames, innermost first; kFull if the table is full.
    std::uint32_t stack(std::span<const std::uint32_t> frames);

    // These return the tables and leave the object empty.
    std::vector<StackNode> take_nodes() { return std::move(nodes_); }

    std::vector<PythonCode> take_codes();

  private:
    struct FrameLine {
        std::uint32_t code;
        std::uint32_t line;
    };

    [[nodiscard]] StackNode node_of(std::uint32_t parent, std::uint32_t frame) const;
    [[nodiscard]] bool is_stack(std::uint32_t node, std::span<const std::uint32_t> frames) const;

    std::vector<StackNode> nodes_;
    std::vector<PythonCode> codes_;
    std::vector<FrameLine> frames_;
    PairMap code_ids_;   // key: function and file
    PairMap frame_ids_;  // key: code and line
    PairMap node_ids_;   // key: parent and frame
    PairMap stack_ids_;  // key: hash of a whole stack
};

}  // namespace fragtrace::analyzer
