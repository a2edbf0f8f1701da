#include "analyzer/analysis/verdict/releasable_bytes.h"

#include <algorithm>

namespace fragtrace::analyzer {

ReleasableBytes::ReleasableBytes(const HeapSnapshot& heap, const HeapSegment& segment) {
    const bool pages = segment.expandable && segment.page_bytes != 0;
    if (!segment.may_release || (segment.expandable && !pages)) {
        return;
    }
    unit_bytes_ = pages ? segment.page_bytes : segment.size_bytes;
    if (unit_bytes_ == 0) {
        return;
    }
    begin_ = pages && segment.reservation != 0 ? segment.address - segment.reservation : 0;
    end_ = begin_;
    for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count;
         ++i) {
        const HeapBlock& block = heap.blocks[i];
        if (block.state != BlockState::kFree) {
            live_.push_back({i, end_, end_ + block.size_bytes});
        }
        end_ += block.size_bytes;
    }
    whole_before_.reserve(live_.size() + 2);
    whole_before_.push_back(0);
    for (std::size_t gap = 0; gap <= live_.size(); ++gap) {
        whole_before_.push_back(whole_before_.back() + whole_bytes(gap_begin(gap), gap_end(gap)));
    }
}

std::uint64_t ReleasableBytes::bytes_without(std::uint32_t first, std::uint32_t last) const {
    if (whole_before_.empty()) {
        return 0;
    }
    const auto live_from = [this](std::uint32_t block) {
        const auto at = std::lower_bound(
            live_.begin(), live_.end(), block, [](const Live& live, std::uint32_t wanted) {
                return live.block < wanted;
            });
        return static_cast<std::size_t>(at - live_.begin());
    };
    const std::size_t begin = live_from(first);
    const std::size_t end = std::max(begin, live_from(last));
    return whole_before_[begin] + whole_bytes(gap_begin(begin), gap_end(end)) +
           (whole_before_.back() - whole_before_[end + 1]);
}

std::uint64_t ReleasableBytes::whole_bytes(std::uint64_t begin, std::uint64_t end) const {
    const std::uint64_t first = begin / unit_bytes_ + (begin % unit_bytes_ != 0 ? 1 : 0);
    const std::uint64_t last = end / unit_bytes_;
    return last > first ? (last - first) * unit_bytes_ : 0;
}

// The gap before a live block, or after the last one.
std::uint64_t ReleasableBytes::gap_begin(std::size_t live) const {
    return live == 0 ? begin_ : live_[live - 1].end;
}

std::uint64_t ReleasableBytes::gap_end(std::size_t live) const {
    return live == live_.size() ? end_ : live_[live].begin;
}

}  // namespace fragtrace::analyzer
