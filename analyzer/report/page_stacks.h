// The page's call tree: one node per distinct chain of frames, shared by all devices.
#pragma once

#include "analyzer/report/page_data.h"
#include "analyzer/trace/symbols.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {

class PageStacks {
  public:
    // Both must live as long as this object; `data` gets frames and nodes.
    PageStacks(Symbolizer* symbols, PageData* data) : symbols_(symbols), data_(data) {
        data_->stacks.push_back({0, 0});
        data_->frames.push_back({});
    }

    // The node of an origin's innermost frame; 0 = no stack.
    std::uint32_t node_of(OriginId origin);

  private:
    std::uint32_t frame_id(const Frame& frame);

    Symbolizer* symbols_;
    PageData* data_;
    std::unordered_map<OriginId, std::uint32_t> origins_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> nodes_;  // (parent, frame)
    std::map<std::tuple<std::string, std::string, std::uint32_t>, std::uint32_t> frames_;
};

}  // namespace fragtrace::analyzer
