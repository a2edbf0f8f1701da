// The names, frames and stacks that the file contains. If not all of them have room, it contains
// the stacks with the most bytes x time. The others are one stack.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::size_t kMostNameBytes = 1000;  // of a name in the file

// Texts by number. Long ones are cut.
class StringTable {
  public:
    std::size_t id(const std::string& text);

    [[nodiscard]] bool contains(const std::string& text) const;

    [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

  private:
    std::unordered_map<std::string, std::size_t> ids_;
    std::vector<std::string> texts_;
};

class StackTables {
  public:
    // Adds the stacks of the data's devices, in at most about `room` bytes. Indices of the data's
    // stacks and frames keep their meaning from call to call.
    void add(const PageData& data, std::size_t room);

    // The file's number of a stack of the data.
    [[nodiscard]] std::uint32_t node(std::uint32_t stack) const {
        return stack < places_.size() && places_[stack] != kNone ? places_[stack] : other_;
    }

    // Whether the file contains it only as one of the "other stacks".
    [[nodiscard]] bool left_out(std::uint32_t stack) const {
        return stack < places_.size() && places_[stack] == kNone;
    }

    // At most so many bytes of JSON.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    // The file's number of a text. Texts of stacks are in the file anyway.
    std::size_t string(const std::string& text) { return strings_.id(text); }

    // Adds "frames", "stacks" and "strings" to the header.
    void write(nlohmann::json& header);

  private:
    static constexpr std::uint32_t kNone = 0xffffffffu;

    struct Node {
        std::uint32_t parent;
        std::uint32_t frame;
        std::uint32_t telling;
    };

    struct FrameRow {
        std::size_t function;
        std::size_t file;
        std::uint32_t line;
        bool python;
        std::size_t label;
        std::size_t library;
    };

    [[nodiscard]] std::size_t bytes_of_text(const std::string& text) const;
    [[nodiscard]] std::size_t bytes_of_all(const PageData& data) const;
    [[nodiscard]] std::size_t bytes_of_frame(const PageFrame& frame) const;
    [[nodiscard]] std::vector<std::uint32_t> most_first(const PageData& data) const;
    void add_node(const PageData& data, std::uint32_t stack);
    std::uint32_t add_frame(const PageFrame& frame);

    StringTable strings_;
    std::vector<FrameRow> frames_;
    std::vector<Node> nodes_;
    std::vector<std::uint32_t> places_;        // by stack of the data
    std::vector<std::uint32_t> frame_places_;  // by frame of the data
    std::uint32_t other_ = 0;                  // the node of all other stacks; 0 = there are none
    std::size_t others_ = 0;                   // stacks that are only there
    std::size_t bytes_ = 0;
};

}  // namespace fragtrace::analyzer
