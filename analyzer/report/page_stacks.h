// The page's call tree: one node per distinct chain of frames, shared by all devices of all
// processes.
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
    // `data` must live as long as this object; it gets frames and nodes.
    explicit PageStacks(PageData* data) : data_(data) {
        data_->stacks.push_back({0, 0});
        data_->frames.push_back({});
    }

    // Origins are those of this process from here on.
    void begin_process(Symbolizer* symbols) {
        symbols_ = symbols;
        origins_.clear();
    }

    // The node of an origin's innermost frame; 0 = no stack.
    std::uint32_t node_of(OriginId origin);

  private:
    std::uint32_t frame_id(const Frame& frame);

    Symbolizer* symbols_ = nullptr;
    PageData* data_;
    std::unordered_map<OriginId, std::uint32_t> origins_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> nodes_;  // (parent, frame)
    std::map<std::tuple<std::string, std::string, std::uint32_t>, std::uint32_t> frames_;
};

}  // namespace fragtrace::analyzer
