#include "analyzer/plan/occupancy.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kMostBucketMoments = 256;
// Average ends of buffers per bucket: each query visits all of them.
constexpr std::uint64_t kBucketEnds = 256;

bool meet(Moments a, Moments b) {
    return a.begin < b.end && b.begin < a.end;
}

}  // namespace

Occupancy::Occupancy(std::uint32_t moments, std::size_t buffers)
    : bucket_moments_(kMostBucketMoments) {
    // Use smaller buckets if there are many buffers per moment. No buffer ends within a bucket of
    // one moment.
    while (bucket_moments_ > 1 &&
           2 * std::uint64_t{buffers} * bucket_moments_ >
               kBucketEnds * std::max<std::uint64_t>(moments, bucket_moments_)) {
        bucket_moments_ /= 2;
    }
    while (leaves_ * bucket_moments_ < moments) {
        first_leaf_ = first_leaf_ * kChildren + 1;
        leaves_ *= kChildren;
    }
    // Leaves after the last moment are not stored.
    const std::size_t used =
        std::max<std::size_t>(1, (moments + bucket_moments_ - 1) / bucket_moments_);
    nodes_.resize(first_leaf_ + used);
    parts_.resize(used);
}

bool Occupancy::add(Ranges* ranges, Range range) {
    const auto first = std::partition_point(
        ranges->begin(), ranges->end(), [&](const Range& r) { return r.end < range.begin; });
    if (first != ranges->end() && first->begin <= range.begin && range.end <= first->end) {
        return false;
    }
    auto last = first;
    while (last != ranges->end() && last->begin <= range.end) {
        range.begin = std::min(range.begin, last->begin);
        range.end = std::max(range.end, last->end);
        ++last;
    }
    work_ += static_cast<std::uint64_t>(ranges->end() - first);
    if (first == last) {
        ranges->insert(first, range);
        return true;
    }
    *first = range;
    ranges->erase(first + 1, last);
    return true;
}

void Occupancy::look_at(const Ranges& ranges) {
    if (!ranges.empty()) {
        cursors_.push_back({ranges.data(), ranges.data() + ranges.size()});
    }
}

void Occupancy::look_up(std::size_t node, Span span, Moments moments) {
    if (span.within(moments)) {
        look_at(nodes_[node].anywhere);
        return;
    }
    look_at(nodes_[node].throughout);
    if (node >= first_leaf_) {
        if (const Parts& parts = parts_[node - first_leaf_]; !parts.empty()) {
            in_parts_.push_back({parts.data(), parts.data() + parts.size()});
        }
        return;
    }
    for_children(node, span, moments, [this, moments](std::size_t child, Span part) {
        look_up(child, part, moments);
    });
}

std::uint64_t Occupancy::lowest(Moments moments, std::uint64_t size_bytes) {
    cursors_.clear();
    in_parts_.clear();
    look_up(0, root(), moments);
    std::uint64_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (Cursor<Range>& cursor : cursors_) {
            const Range* const before = cursor.at;
            for (; cursor.at != cursor.end && cursor.at->begin < offset + size_bytes; ++cursor.at) {
                if (cursor.at->end > offset) {
                    offset = cursor.at->end;
                    moved = true;
                }
            }
            work_ += 1 + static_cast<std::uint64_t>(cursor.at - before);
        }
        for (Cursor<Part>& cursor : in_parts_) {
            const Part* const before = cursor.at;
            for (; cursor.at != cursor.end && cursor.at->range.begin < offset + size_bytes;
                 ++cursor.at) {
                if (cursor.at->range.end > offset && meet(cursor.at->moments, moments)) {
                    offset = cursor.at->range.end;
                    moved = true;
                }
            }
            work_ += 1 + static_cast<std::uint64_t>(cursor.at - before);
        }
    }
    return offset;
}

bool Occupancy::take(std::size_t node, Span span, Moments moments, const Range& range) {
    Node& here = nodes_[node];
    if (span.within(moments)) {
        add(&here.throughout, range);
        return add(&here.anywhere, range);
    }
    if (node >= first_leaf_) {
        Parts& parts = parts_[node - first_leaf_];
        const auto after = std::upper_bound(
            parts.begin(), parts.end(), range.begin, [](std::uint64_t begin, const Part& part) {
                return begin < part.range.begin;
            });
        work_ += static_cast<std::uint64_t>(parts.end() - after);
        parts.insert(after, {moments, range});
        return add(&here.anywhere, range);
    }
    bool changed = false;
    for_children(node, span, moments, [&](std::size_t child, Span part) {
        changed = take(child, part, moments, range) || changed;
    });
    // A range that was already in a child is already in its parent, too.
    return changed && add(&here.anywhere, range);
}

void Occupancy::take(Moments moments, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
    take(0, root(), moments, {offset_bytes, offset_bytes + size_bytes});
}

}  // namespace fragtrace::analyzer
