#include "analyzer/model/segment_map.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// Without a pool each allocation is a segment, and each insertion moves half a leaf.
constexpr std::size_t kLeafSegments = 64;

// Of PyTorch's pool.
constexpr DeviceAddress kLeastSegmentBytes = 2 << 20;

bool joins(const RecordedSegment& left, const RecordedSegment& right) {
    return left.expandable() && left.page_bytes == right.page_bytes &&
           left.reservation == right.reservation && left.end() == right.address;
}

}  // namespace

RecordedSegment* SegmentMap::find(DeviceAddress address) {
    const auto holds = [this, address](Place at) {
        return at.leaf < leaves_.size() && at.slot < leaves_[at.leaf].size() &&
               address >= segment_at(at).address &&
               address - segment_at(at).address < segment_at(at).size_bytes;
    };
    Place& hit = hits_[(address / kLeastSegmentBytes) % hits_.size()];
    if (!holds(hit)) {
        const Place at = first_ending_after(address);
        if (!holds(at)) {
            return nullptr;
        }
        hit = at;
    }
    return &leaves_[hit.leaf][hit.slot];
}

const RecordedSegment* SegmentMap::at_or_before(DeviceAddress address) const {
    const auto after = std::upper_bound(
        leaves_.begin(), leaves_.end(), address, [](DeviceAddress value, const Leaf& leaf) {
            return value < leaf.front().address;
        });
    if (after == leaves_.begin()) {
        return nullptr;
    }
    const Leaf& leaf = *std::prev(after);
    const auto behind = std::upper_bound(
        leaf.begin(), leaf.end(), address, [](DeviceAddress value, const RecordedSegment& one) {
            return value < one.address;
        });
    return &*std::prev(behind);
}

bool SegmentMap::overlaps(DeviceAddress address, std::uint64_t size_bytes) const {
    const Place at = first_ending_after(address);
    return is_there(at) &&
           (segment_at(at).address <= address || segment_at(at).address - address < size_bytes);
}

RecordedSegment* SegmentMap::add(const RecordedSegment& segment) {
    const Place at = first_ending_after(segment.address);
    RecordedSegment* left = nullptr;
    if (at.slot > 0) {
        left = &leaves_[at.leaf][at.slot - 1];
    } else if (at.leaf > 0) {
        left = &leaves_[at.leaf - 1].back();
    }
    RecordedSegment* right = is_there(at) ? &leaves_[at.leaf][at.slot] : nullptr;
    const bool joins_right = right != nullptr && joins(segment, *right);
    if (left != nullptr && joins(*left, segment)) {
        left->size_bytes += segment.size_bytes;
        if (joins_right) {
            left->size_bytes += right->size_bytes;
            left->active_bytes += right->active_bytes;
            const DeviceAddress begin = left->address;
            erase(at);
            const Place grown = first_ending_after(begin);
            return &leaves_[grown.leaf][grown.slot];
        }
        return left;
    }
    if (joins_right) {
        right->address = segment.address;
        right->size_bytes += segment.size_bytes;
        return right;
    }
    return insert(segment);
}

void SegmentMap::clear() {
    leaves_.clear();
    size_ = 0;
}

SegmentMap::Place SegmentMap::first_ending_after(DeviceAddress address) const {
    const auto leaf = std::partition_point(leaves_.begin(), leaves_.end(), [&](const Leaf& one) {
        return one.back().end() <= address;
    });
    if (leaf == leaves_.end()) {
        return {leaves_.size(), 0};
    }
    const auto found =
        std::partition_point(leaf->begin(), leaf->end(), [&](const RecordedSegment& segment) {
            return segment.end() <= address;
        });
    return {static_cast<std::size_t>(leaf - leaves_.begin()),
            static_cast<std::size_t>(found - leaf->begin())};
}

RecordedSegment* SegmentMap::insert(const RecordedSegment& segment) {
    Place at = first_ending_after(segment.address);
    if (!is_there(at)) {  // after all others
        if (leaves_.empty()) {
            leaves_.emplace_back();
        }
        at = {leaves_.size() - 1, leaves_.back().size()};
    }
    if (leaves_[at.leaf].size() == kLeafSegments) {
        Leaf& full = leaves_[at.leaf];
        // If segments arrive in ascending or descending address order, this split keeps leaves
        // nearly full.
        const std::size_t keep = at.slot == kLeafSegments ? kLeafSegments - 1
                                 : at.slot == 0           ? 1
                                                          : kLeafSegments / 2;
        const auto middle = full.begin() + static_cast<std::ptrdiff_t>(keep);
        Leaf rest(middle, full.end());
        full.erase(middle, full.end());
        leaves_.insert(leaves_.begin() + static_cast<std::ptrdiff_t>(at.leaf) + 1, std::move(rest));
        if (at.slot > keep) {
            at = {at.leaf + 1, at.slot - keep};
        }
    }
    Leaf& leaf = leaves_[at.leaf];
    ++size_;
    return &*leaf.insert(leaf.begin() + static_cast<std::ptrdiff_t>(at.slot), segment);
}

void SegmentMap::erase(Place at) {
    Leaf& leaf = leaves_[at.leaf];
    leaf.erase(leaf.begin() + static_cast<std::ptrdiff_t>(at.slot));
    --size_;
    if (leaf.empty()) {
        leaves_.erase(leaves_.begin() + static_cast<std::ptrdiff_t>(at.leaf));
    }
}

}  // namespace fragtrace::analyzer
