// Texts and stacks of an import. Each text, frame and stack is kept once.
//
// The input is untrusted, so texts and stacks are limited. Not thread-safe.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/model/timeline.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::size_t kMostNameBytes = 1000;  // of any text of an import

class ImportStacks {
  public:
    // The number of a text, from 0. It is made safe to print and cut to kMostNameBytes. nullopt: no
    // room for further texts.
    std::optional<std::uint32_t> text_number(std::string_view text);

    [[nodiscard]] const std::string& text(std::uint32_t number) const { return texts_[number]; }

    // The number of a frame, from 0. `line` 0 = unknown.
    std::uint32_t frame_number(const PythonCode& code, std::uint32_t line);

    // The stack with this frame inside the stack `caller` (0 = none); `caller` itself if there are
    // too many stacks.
    std::uint32_t stack(std::uint32_t caller, std::uint32_t frame);

    [[nodiscard]] bool empty() const { return nodes_.empty(); }

    // The nodes of all stacks: number 1 is the first.
    [[nodiscard]] const std::vector<StackNode>& nodes() const { return nodes_; }

    [[nodiscard]] std::vector<PythonCode> take_codes() { return std::move(codes_); }

  private:
    std::vector<std::string> texts_;
    std::unordered_map<std::string, std::uint32_t> text_numbers_;
    std::size_t text_bytes_ = 0;
    std::vector<PythonCode> codes_;
    std::map<std::pair<std::string, std::string>, std::uint32_t> code_numbers_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> frames_;  // code, line
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> frame_numbers_;
    std::vector<StackNode> nodes_;
    std::unordered_map<std::uint64_t, std::uint32_t> children_;
};

}  // namespace fragtrace::analyzer
