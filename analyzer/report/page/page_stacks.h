// The page's call tree: one node per distinct chain of frames, shared by all devices of all
// processes.
#pragma once

#include "analyzer/report/page/page_data.h"
#include "analyzer/trace/symbols.h"
#include "analyzer/trace/user_frame.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

class PageStacks {
  public:
    // `data` must outlive this object. Frames and nodes are added to it.
    explicit PageStacks(PageData* data);

    // From here on, origins belong to this process.
    void begin_process(Symbolizer* symbols) {
        symbols_ = symbols;
        origins_.clear();
    }

    // The node of an origin's innermost frame; 0 = no stack.
    std::uint32_t node_of(OriginId origin);

  private:
    // `label`: the program's own label for blocks that are named by this frame.
    std::uint32_t frame_id(const Frame& frame, const std::string& label);
    [[nodiscard]] std::uint32_t telling_of(std::uint32_t node) const;

    Symbolizer* symbols_ = nullptr;
    PageData* data_;
    std::unordered_map<OriginId, std::uint32_t> origins_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> nodes_;  // (parent, frame)
    // Key: function with label, source file, module, line, whether it is Python.
    std::map<std::tuple<std::string, std::string, std::string, std::uint32_t, bool>, std::uint32_t>
        frames_;
    std::vector<FrameTraits> traits_;  // indexed by frame
};

}  // namespace fragtrace::analyzer
