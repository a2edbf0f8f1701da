// Interns the frames and stacks of a snapshot: codes, lines, and the tree of stacks of a Timeline.
//
// Most lists of frames of a history are equal to one that was seen: they are found by one hash.
// Not thread-safe.
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

    // The number of a frame, by the numbers of its texts; kFull when there is no more room.
    std::uint32_t frame(std::uint32_t function,
                        std::uint32_t file,
                        std::uint32_t line,
                        std::string_view function_text,
                        std::string_view file_text);

    // The node of a stack, frames innermost first; kFull as above.
    std::uint32_t stack(std::span<const std::uint32_t> frames);

    // The tables; this is empty afterwards.
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
    PairMap code_ids_;   // function and file
    PairMap frame_ids_;  // code and line
    PairMap node_ids_;   // parent and frame
    PairMap stack_ids_;  // hash of a whole stack
};

}  // namespace fragtrace::analyzer
