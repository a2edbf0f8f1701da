#include "analyzer/report/page_stacks.h"

#include <ranges>

namespace fragtrace::analyzer {

std::uint32_t PageStacks::frame_id(const Frame& frame) {
    const std::string& file = frame.file.empty() ? frame.module : frame.file;
    const auto next = static_cast<std::uint32_t>(data_->frames.size());
    const auto [found, fresh] = frames_.try_emplace({frame.function, file, frame.line}, next);
    if (fresh) {
        data_->frames.push_back({.function = frame.function,
                                 .file = file,
                                 .line = frame.line,
                                 .python = frame.kind == Frame::Kind::kPython});
    }
    return found->second;
}

std::uint32_t PageStacks::node_of(OriginId origin) {
    const auto known = origins_.find(origin);
    if (known != origins_.end()) {
        return known->second;
    }
    std::uint32_t node = 0;
    for (const Frame& frame : symbols_->frames(origin) | std::views::reverse) {
        const auto next = static_cast<std::uint32_t>(data_->stacks.size());
        const auto [found, fresh] = nodes_.try_emplace({node, frame_id(frame)}, next);
        if (fresh) {
            data_->stacks.push_back({node, found->first.second});
        }
        node = found->second;
    }
    origins_.emplace(origin, node);
    return node;
}

}  // namespace fragtrace::analyzer
