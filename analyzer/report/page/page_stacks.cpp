#include "analyzer/report/page/page_stacks.h"

#include "analyzer/trace/user_frame.h"

namespace fragtrace::analyzer {

PageStacks::PageStacks(PageData* data) : data_(data) {
    data_->stacks.push_back({});
    data_->frames.push_back({});
    data_->frames.back().label = "unknown";  // same name as in Symbolizer::describe
    traits_.push_back(0);
}

std::uint32_t PageStacks::frame_id(const Frame& frame, const std::string& label) {
    const bool python = frame.kind == Frame::Kind::kPython;
    const auto next = static_cast<std::uint32_t>(data_->frames.size());
    const auto [found, fresh] = frames_.try_emplace(
        {frame.function + label, frame.file, frame.module, frame.line, python}, next);
    if (fresh) {
        data_->frames.push_back({.function = frame.function,
                                 .file = frame.file.empty() ? frame.module : frame.file,
                                 .line = frame.line,
                                 .python = python,
                                 .label = describe_frame(frame) + label,
                                 .library = library_of(frame)});
        traits_.push_back(frame_traits(frame));
    }
    return found->second;
}

// Number of callers from this node up to the frame that names the stack in reports.
std::uint32_t PageStacks::telling_of(std::uint32_t node) const {
    std::vector<FrameTraits> innermost_first;
    for (std::uint32_t at = node; at != 0; at = data_->stacks[at].parent) {
        innermost_first.push_back(traits_[data_->stacks[at].frame]);
    }
    return static_cast<std::uint32_t>(user_frame_index(innermost_first));
}

std::uint32_t PageStacks::node_of(OriginId origin) {
    const auto known = origins_.find(origin);
    if (known != origins_.end()) {
        return known->second;
    }
    std::uint32_t node = 0;
    const std::vector<Frame>& frames = symbols_->frames(origin);
    const Frame* const told = pick_user_frame(frames);
    const std::string label = symbols_->label_of(origin);
    for (auto at = frames.rbegin(); at != frames.rend(); ++at) {
        const Frame& frame = *at;
        const auto next = static_cast<std::uint32_t>(data_->stacks.size());
        const auto [found, fresh] =
            nodes_.try_emplace({node, frame_id(frame, &frame == told ? label : "")}, next);
        if (fresh) {
            data_->stacks.push_back({.parent = node, .frame = found->first.second});
            data_->stacks.back().telling = telling_of(next);
        }
        node = found->second;
    }
    origins_.emplace(origin, node);
    return node;
}

}  // namespace fragtrace::analyzer
