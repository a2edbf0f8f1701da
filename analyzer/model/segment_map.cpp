#include "analyzer/model/segment_map.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

bool joins(const RecordedSegment& left, const RecordedSegment& right) {
    return left.expandable() && left.page_bytes == right.page_bytes &&
           left.reservation == right.reservation && left.end() == right.address;
}

}  // namespace

RecordedSegment* SegmentMap::find(DeviceAddress address) {
    const auto holds = [this, address](std::size_t index) {
        return index < segments_.size() && address >= segments_[index].address &&
               address - segments_[index].address < segments_[index].size_bytes;
    };
    if (!holds(last_hit_)) {
        const std::size_t index = first_ending_after(address);
        if (!holds(index)) {
            return nullptr;
        }
        last_hit_ = index;
    }
    return &segments_[last_hit_];
}

bool SegmentMap::overlaps(DeviceAddress address, std::uint64_t size_bytes) const {
    const std::size_t index = first_ending_after(address);
    return index < segments_.size() &&
           (segments_[index].address <= address || segments_[index].address - address < size_bytes);
}

RecordedSegment* SegmentMap::add(const RecordedSegment& segment) {
    const std::size_t index = first_ending_after(segment.address);
    const bool left = index > 0 && joins(segments_[index - 1], segment);
    const bool right = index < segments_.size() && joins(segment, segments_[index]);
    if (left) {
        RecordedSegment& grown = segments_[index - 1];
        grown.size_bytes += segment.size_bytes;
        if (right) {
            grown.size_bytes += segments_[index].size_bytes;
            grown.active_bytes += segments_[index].active_bytes;
            segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(index));
        }
        return &grown;
    }
    if (right) {
        RecordedSegment& grown = segments_[index];
        grown.address = segment.address;
        grown.size_bytes += segment.size_bytes;
        return &grown;
    }
    return &*segments_.insert(segments_.begin() + static_cast<std::ptrdiff_t>(index), segment);
}

void SegmentMap::clear() {
    segments_.clear();
}

std::size_t SegmentMap::first_ending_after(DeviceAddress address) const {
    const auto found = std::partition_point(
        segments_.begin(), segments_.end(), [address](const RecordedSegment& segment) {
            return segment.end() <= address;
        });
    return static_cast<std::size_t>(found - segments_.begin());
}

void SegmentMap::replace(std::size_t first,
                         std::size_t last,
                         const std::vector<RecordedSegment>& parts) {
    const auto begin = segments_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = segments_.begin() + static_cast<std::ptrdiff_t>(last);
    const auto at = segments_.erase(begin, end);
    segments_.insert(at, parts.begin(), parts.end());
}

}  // namespace fragtrace::analyzer
