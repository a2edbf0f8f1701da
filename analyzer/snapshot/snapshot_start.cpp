#include "analyzer/snapshot/snapshot_start.h"

#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <span>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostLabelBytes = 1024;

class Undo {
  public:
    Undo(Snapshot* snapshot,
         std::uint32_t device,
         const PytorchConfig& config,
         const PytorchRules& rules)
        : snapshot_(*snapshot),
          device_(device),
          has_pool_(!snapshot->without_pool.contains(device)),
          config_(config),
          rules_(rules) {
        if (device < snapshot_.histories.size()) {
            const auto [first, count] = snapshot_.histories[device];
            entries_ = std::span(snapshot_.entries).subspan(first, count);
        }
    }

    SnapshotStart run() {
        take_end();
        const auto none = [this](SnapshotAction action) {
            return std::none_of(entries_.begin(), entries_.end(), [action](const auto& entry) {
                return entry.action == action;
            });
        };
        start_.without_requests = none(SnapshotAction::kFreeRequested);
        start_.without_completions = none(SnapshotAction::kFreeCompleted);
        start_.block_units.resize(entries_.size());
        for (index_ = entries_.size(); index_-- > 0;) {
            undo(entries_[index_]);
        }
        return std::move(start_);
    }

  private:
    void take_end() {
        for (const SnapshotSegment& segment : snapshot_.segments) {
            if (segment.device != device_) {
                continue;
            }
            start_.segments[segment.address] = {.size_bytes = segment.size_bytes,
                                                .stream = segment.stream,
                                                .pool = segment.pool,
                                                .stack = segment.stack,
                                                .small = segment.small,
                                                .expandable = segment.expandable};
            std::uint64_t address = segment.address;
            for (std::uint32_t i = 0; has_pool_ && i < segment.block_count; ++i) {
                const SnapshotBlock& block = snapshot_.blocks[segment.first_block + i];
                address = block.address != 0 ? block.address : address;
                if (block.live && block.size_bytes != 0) {
                    start_.blocks[address] = {.size_bytes = block.size_bytes,
                                              .requested_bytes = block.requested_bytes,
                                              .stream = segment.stream,
                                              .stack = block.stack,
                                              .pending = block.pending};
                }
                address += block.size_bytes;
            }
        }
    }

    void undo(SnapshotEntry& entry) {
        if (!has_pool_ && entry.action < SnapshotAction::kSegmentAlloc) {
            return;  // the segments say the same
        }
        switch (entry.action) {
            case SnapshotAction::kAlloc:
                return undo_alloc(entry);
            case SnapshotAction::kFreeRequested:
                return undo_free_requested(entry);
            case SnapshotAction::kFreeCompleted:
                return undo_free_completed(entry);
            case SnapshotAction::kSegmentAlloc:
                if (const auto segment = start_.segments.find(entry.address);
                    segment != start_.segments.end()) {
                    entry.pool = entry.pool == 0 ? segment->second.pool : entry.pool;
                }
                return take_range(entry);
            case SnapshotAction::kSegmentMap:
                return take_range(entry);
            case SnapshotAction::kSegmentFree:
            case SnapshotAction::kSegmentUnmap:
                return add_range(entry);
            case SnapshotAction::kAnnotate:
                return undo_annotation(entry);
            default:
                return;
        }
    }

    void undo_alloc(SnapshotEntry& entry) {
        const auto block = block_at(entry.address);
        if (block == start_.blocks.end()) {
            contradiction(entry, "allocated, but free afterwards");
            start_.block_units[index_] = units(rounded(entry.size_bytes));
            return;
        }
        start_.block_units[index_] = units(block->second.size_bytes);
        entry.stack = entry.stack == 0 ? block->second.stack : entry.stack;
        entry.label = joined(entry.label, block->second.label);
        const auto segment = segment_at(entry.address);
        if (segment != start_.segments.end()) {
            entry.pool = entry.pool == 0 ? segment->second.pool : entry.pool;
        }
        last_block_ = start_.blocks.end();
        spare_ = start_.blocks.extract(block);
        if (segment != start_.segments.end()) {
            widen_block_below(entry.address, *segment);
        }
    }

    void undo_annotation(const SnapshotEntry& entry) {
        const auto block = block_at(entry.address);
        if (block == start_.blocks.end()) {
            return contradiction(entry, "annotated, but free at that time");
        }
        block->second.label = joined(entry.label, block->second.label);
    }

    // Joins two labels of one block, the earlier one first.
    std::uint32_t joined(std::uint32_t earlier, std::uint32_t later) {
        if (earlier == 0 || later == 0 || earlier == later) {
            return earlier != 0 ? earlier : later;
        }
        const auto [found, is_new] = joined_.try_emplace(
            {earlier, later}, static_cast<std::uint32_t>(snapshot_.labels.size()));
        if (is_new) {
            snapshot_.labels.push_back(
                fmt::format("{}; {}", snapshot_.labels[earlier], snapshot_.labels[later])
                    .substr(0, kMostLabelBytes));
        }
        return found->second;
    }

    // The allocator places a block at the front of a free block, so the block below it extends to
    // that address.
    void widen_block_below(std::uint64_t address, const HeldSegments::value_type& segment) {
        const auto above = start_.blocks.lower_bound(address);
        if (above == start_.blocks.begin() || segment.second.small || segment.second.expandable) {
            return;
        }
        auto& [begin, below] = *std::prev(above);
        const std::uint64_t gap = address - begin - below.size_bytes;
        if (begin >= segment.first && gap <= pytorch::kSmallSizeBytes) {
            below.size_bytes += gap;
        }
    }

    void undo_free_requested(const SnapshotEntry& entry) {
        const auto block = block_at(entry.address);
        if (block != start_.blocks.end()) {
            block->second.pending = false;
        } else if (start_.without_completions) {
            hold(entry, false);
        } else {
            contradiction(entry, "freed, but its completion is missing");
            hold(entry, false);
        }
    }

    void undo_free_completed(const SnapshotEntry& entry) { hold(entry, !start_.without_requests); }

    // Undoes a free: the block was allocated before.
    void hold(const SnapshotEntry& entry, bool pending) {
        const auto segment = segment_at(entry.address);
        if (segment == start_.segments.end()) {
            return contradiction(entry, "freed, but in no segment");
        }
        const auto next = start_.blocks.lower_bound(entry.address);
        const bool overlaps =
            (next != start_.blocks.end() && next->first == entry.address) ||
            (next != start_.blocks.begin() &&
             std::prev(next)->first + std::prev(next)->second.size_bytes > entry.address);
        if (overlaps) {
            return contradiction(entry, "freed, but allocated afterwards");
        }
        const std::uint64_t segment_end = segment->first + segment->second.size_bytes;
        const std::uint64_t end =
            next == start_.blocks.end() ? segment_end : std::min(next->first, segment_end);
        const std::uint64_t size = block_bytes(entry, segment->second, end - entry.address);
        if (size == 0) {
            return contradiction(entry, "freed, but larger than the free memory there");
        }
        const HeldBlock block = {.size_bytes = size,
                                 .requested_bytes = entry.size_bytes,
                                 .stream = segment->second.stream,
                                 .stack = entry.stack,
                                 .pending = pending};
        if (spare_.empty()) {
            last_block_ = start_.blocks.emplace_hint(next, entry.address, block);
        } else {
            spare_.key() = entry.address;
            spare_.mapped() = block;
            last_block_ = start_.blocks.insert(next, std::move(spare_));
        }
    }

    // The size of the block; 0 if it does not fit.
    [[nodiscard]] std::uint64_t block_bytes(const SnapshotEntry& entry,
                                            const HeldSegment& segment,
                                            std::uint64_t room) const {
        const std::uint64_t wanted = rounded(entry.size_bytes);
        if (wanted > room) {
            return 0;
        }
        const bool keeps_remainder =
            !segment.small && !segment.expandable &&
            (room - wanted <= pytorch::kSmallSizeBytes || wanted >= config_.max_split_size_bytes);
        return keeps_remainder ? room : wanted;
    }

    // Undoes segment_alloc and segment_map: the range did not exist before.
    void take_range(const SnapshotEntry& entry) {
        const auto segment = segment_at(entry.address);
        const std::uint64_t end = entry.address + entry.size_bytes;
        if (segment == start_.segments.end() || segment->first + segment->second.size_bytes < end) {
            return contradiction(entry, "a new segment, but missing afterwards");
        }
        const auto block = start_.blocks.lower_bound(entry.address);
        if (block != start_.blocks.end() && block->first < end) {
            contradiction(entry, "a new segment, but contains older blocks");
        }
        const HeldSegment whole = segment->second;
        const std::uint64_t begin = segment->first;
        last_segment_ = start_.segments.end();
        start_.segments.erase(segment);
        if (begin < entry.address) {
            start_.segments[begin] = part_of(whole, entry.address - begin);
        }
        if (end < begin + whole.size_bytes) {
            start_.segments[end] = part_of(whole, begin + whole.size_bytes - end);
        }
    }

    static HeldSegment part_of(const HeldSegment& whole, std::uint64_t size_bytes) {
        HeldSegment part = whole;
        part.size_bytes = size_bytes;
        return part;
    }

    // Undoes segment_free and segment_unmap: the range existed before. Adjacent mapped ranges
    // become one segment, as in the state at the end.
    void add_range(const SnapshotEntry& entry) {
        const bool expandable = entry.action == SnapshotAction::kSegmentUnmap;
        auto next = start_.segments.lower_bound(entry.address);
        const std::uint64_t end = entry.address + entry.size_bytes;
        if (entry.size_bytes == 0 || end < entry.address ||
            (next != start_.segments.end() && next->first < end) ||
            (next != start_.segments.begin() &&
             std::prev(next)->first + std::prev(next)->second.size_bytes > entry.address)) {
            return contradiction(entry, "a released segment, but present afterwards");
        }
        HeldSegment range = {
            .size_bytes = entry.size_bytes,
            .stream = entry.stream,
            .pool = entry.pool,
            .stack = entry.stack,
            .small = expandable
                         ? maps_small_pages(entry.size_bytes, config_.large_segment_size_bytes)
                         : entry.size_bytes <= pytorch::kSmallSegmentBytes,
            .expandable = expandable};
        std::uint64_t begin = entry.address;
        last_segment_ = start_.segments.end();
        const auto joins = [&range](const HeldSegment& other) {
            return range.expandable && other.expandable && other.stream == range.stream &&
                   other.pool == range.pool;
        };
        if (next != start_.segments.end() && next->first == end && joins(next->second)) {
            range.small = next->second.small;
            range.size_bytes += next->second.size_bytes;
            next = start_.segments.erase(next);
        }
        if (next != start_.segments.begin()) {
            const auto before = std::prev(next);
            if (before->first + before->second.size_bytes == begin && joins(before->second)) {
                range.small = before->second.small;
                range.size_bytes += before->second.size_bytes;
                begin = before->first;
            }
        }
        start_.segments[begin] = range;
    }

    // The block that begins at an address; the end if there is none. Both requests of a free come
    // one after the other, so the last block is often the one.
    HeldBlocks::iterator block_at(std::uint64_t address) {
        return last_block_ != start_.blocks.end() && last_block_->first == address
                   ? last_block_
                   : start_.blocks.find(address);
    }

    // The segment that contains an address; the end if there is none.
    HeldSegments::iterator segment_at(std::uint64_t address) {
        if (last_segment_ == start_.segments.end() ||
            address - last_segment_->first >= last_segment_bytes_) {
            const auto after = start_.segments.upper_bound(address);
            if (after == start_.segments.begin()) {
                return start_.segments.end();
            }
            last_segment_ = std::prev(after);
            last_segment_bytes_ = after == start_.segments.end()
                                      ? last_segment_->second.size_bytes
                                      : std::min(last_segment_->second.size_bytes,
                                                 after->first - last_segment_->first);
        }
        return address - last_segment_->first < last_segment_bytes_ ? last_segment_
                                                                    : start_.segments.end();
    }

    [[nodiscard]] std::uint64_t rounded(std::uint64_t requested_bytes) const {
        return pytorch::round_request(config_, rules_, std::max<std::uint64_t>(requested_bytes, 1));
    }

    static std::uint32_t units(std::uint64_t size_bytes) {
        return static_cast<std::uint32_t>(
            std::min<std::uint64_t>(size_bytes / kBlockUnitBytes, 0xffffffffu));
    }

    void contradiction(const SnapshotEntry& entry, std::string_view what) {
        ++start_.contradictions;
        if (start_.last_contradiction.empty()) {  // entries are undone in reverse order
            start_.last_contradiction = fmt::format(
                "entry {} of device {}: {:#x} is {}", index_, device_, entry.address, what);
        }
    }

    Snapshot& snapshot_;
    std::uint32_t device_;
    bool has_pool_;
    const PytorchConfig& config_;
    const PytorchRules& rules_;
    std::span<SnapshotEntry> entries_;
    std::size_t index_ = 0;
    HeldBlocks::node_type spare_;  // of the block that was undone last: saves an allocation
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> joined_;
    SnapshotStart start_;
    HeldBlocks::iterator last_block_ = start_.blocks.end();        // found or inserted last
    HeldSegments::iterator last_segment_ = start_.segments.end();  // found last
    std::uint64_t last_segment_bytes_ = 0;  // up to its end, or to the next one
};

}  // namespace

SnapshotStart undo_history(Snapshot* snapshot,
                           std::uint32_t device,
                           const PytorchConfig& config,
                           const PytorchRules& rules) {
    return Undo(snapshot, device, config, rules).run();
}

}  // namespace fragtrace::analyzer
