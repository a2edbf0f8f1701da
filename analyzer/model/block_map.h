// Blocks ordered by address: a sorted list in leaves of at most 64 blocks. An insertion moves few
// bytes, a search is two binary searches over packed keys, and a walk reads memory linearly.
//
// Pointers and positions are valid until the next insertion or removal. Not thread-safe.
#pragma once

#include "analyzer/model/event.h"
#include "analyzer/model/heap_snapshot.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct RecordedBlock {
    DeviceAddress address = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t requested_bytes = 0;  // kUnknown64 = not known
    EventIndex allocated_by = kNoEvent;
    StreamId stream = kNoStream;
    BlockState state = BlockState::kLive;
    std::uint32_t pending_events = 0;  // events that must complete before reuse
    std::uint32_t private_pool = 0;

    [[nodiscard]] DeviceAddress end() const { return address + size_bytes; }

    // The sums count this value: an unknown request counts as the whole block.
    [[nodiscard]] std::uint64_t counted_request() const {
        return std::min(requested_bytes, size_bytes);
    }
};

class BlockMap {
  public:
    struct Position {
        std::size_t leaf = 0;
        std::size_t slot = 0;
    };

    [[nodiscard]] std::size_t size() const { return size_; }

    // The first block at or after `address`.
    [[nodiscard]] Position lower_bound(DeviceAddress address) const {
        if (order_.empty()) {
            return {0, 0};
        }
        const std::size_t leaf = leaf_of(address);
        const Leaf& content = leaf_at(leaf);
        const std::size_t slot = content.lower_bound(address);
        return slot == content.count ? Position{leaf + 1, 0} : Position{leaf, slot};
    }

    // The block at a position; nullptr at the end.
    [[nodiscard]] const RecordedBlock* at(Position position) const {
        return position.leaf < order_.size() ? &leaf_at(position.leaf).blocks[position.slot]
                                             : nullptr;
    }

    [[nodiscard]] RecordedBlock* at(Position position) {
        return position.leaf < order_.size() ? &leaf_at(position.leaf).blocks[position.slot]
                                             : nullptr;
    }

    [[nodiscard]] Position next(Position position) const {
        return ++position.slot < leaf_at(position.leaf).count ? position
                                                              : Position{position.leaf + 1, 0};
    }

    // The block before a position; nullptr at the beginning.
    [[nodiscard]] const RecordedBlock* before(Position position) const {
        if (position.slot > 0) {
            return &leaf_at(position.leaf).blocks[position.slot - 1];
        }
        if (position.leaf == 0) {
            return nullptr;
        }
        const Leaf& leaf = leaf_at(position.leaf - 1);
        return &leaf.blocks[leaf.count - 1];
    }

    [[nodiscard]] RecordedBlock* find(DeviceAddress address) {
        RecordedBlock* block = at(lower_bound(address));
        return block != nullptr && block->address == address ? block : nullptr;
    }

    // The address must not be in the map. `next`: where the search for it ended. With another
    // position the map searches again.
    void insert(const RecordedBlock& block) { insert(block, Position{}); }

    void insert(const RecordedBlock& block, Position next) {
        Position position = next;
        if (position.slot == 0 && position.leaf > 0 && position.leaf <= order_.size()) {
            position = {position.leaf - 1, leaf_at(position.leaf - 1).count};
        }
        if (!can_take(block.address, position)) {
            position = place_for(block.address);
        }
        Leaf& content = leaf_at(position.leaf);
        auto* const keys = content.keys.begin() + position.slot;
        auto* const blocks = content.blocks.begin() + position.slot;
        std::copy_backward(
            keys, content.keys.begin() + content.count, content.keys.begin() + content.count + 1);
        std::copy_backward(blocks,
                           content.blocks.begin() + content.count,
                           content.blocks.begin() + content.count + 1);
        *keys = block.address;
        *blocks = block;
        ++content.count;
        first_keys_[position.leaf] = content.keys[0];
        ++size_;
    }

    void erase(Position position) {
        Leaf& content = leaf_at(position.leaf);
        auto* const keys = content.keys.begin();
        auto* const blocks = content.blocks.begin();
        std::copy(keys + position.slot + 1, keys + content.count, keys + position.slot);
        std::copy(blocks + position.slot + 1, blocks + content.count, blocks + position.slot);
        --content.count;
        --size_;
        if (content.count == 0) {
            spare_.push_back(order_[position.leaf]);
            order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(position.leaf));
            first_keys_.erase(first_keys_.begin() + static_cast<std::ptrdiff_t>(position.leaf));
        } else {
            first_keys_[position.leaf] = content.keys[0];
        }
    }

  private:
    static constexpr std::uint32_t kLeafBlocks = 64;

    struct Leaf {
        std::uint32_t count = 0;
        std::array<DeviceAddress, kLeafBlocks> keys;
        std::array<RecordedBlock, kLeafBlocks> blocks;

        [[nodiscard]] std::size_t lower_bound(DeviceAddress address) const {
            return keys_below(keys.data(), count, address);
        }
    };

    [[nodiscard]] Leaf& leaf_at(std::size_t leaf) { return leaves_[order_[leaf]]; }

    [[nodiscard]] const Leaf& leaf_at(std::size_t leaf) const { return leaves_[order_[leaf]]; }

    // Whether a block fits into a leaf there: between its neighbours, and the leaf is not full.
    [[nodiscard]] bool can_take(DeviceAddress address, Position position) const {
        if (position.leaf >= order_.size()) {
            return false;
        }
        const Leaf& leaf = leaf_at(position.leaf);
        const std::size_t slot = position.slot;
        if (leaf.count == kLeafBlocks || slot > leaf.count) {
            return false;
        }
        const bool after = slot > 0 ? leaf.keys[slot - 1] < address : position.leaf == 0;
        const bool before = slot < leaf.count ? address < leaf.keys[slot]
                                              : position.leaf + 1 == order_.size() ||
                                                    address < first_keys_[position.leaf + 1];
        return after && before;
    }

    [[nodiscard]] Position place_for(DeviceAddress address) {
        if (order_.empty()) {
            add_leaf(0, address);
        }
        std::size_t leaf = leaf_of(address);
        if (leaf_at(leaf).count == kLeafBlocks) {
            split(leaf);
            leaf = leaf_of(address);
        }
        return {leaf, leaf_at(leaf).lower_bound(address)};
    }

    // The last leaf that begins at or before `address`, or the first one.
    [[nodiscard]] std::size_t leaf_of(DeviceAddress address) const {
        const std::size_t leaves = first_keys_.size();
        const std::size_t below = keys_below(first_keys_.data(), leaves, address);
        const bool begins_here = below < leaves && first_keys_[below] == address;
        return below == 0 || begins_here ? below : below - 1;
    }

    // The number of ascending keys below `address`. Every step is an addition, not a branch: the
    // processor cannot foresee where an address lies.
    static std::size_t keys_below(const DeviceAddress* keys,
                                  std::size_t count,
                                  DeviceAddress address) {
        std::size_t below = 0;
        while (count > 1) {
            const std::size_t half = count / 2;
            below += keys[below + half - 1] < address ? half : 0;
            count -= half;
        }
        return below + (count == 1 && keys[below] < address ? 1 : 0);
    }

    void add_leaf(std::size_t leaf, DeviceAddress first_key) {
        std::uint32_t index = 0;
        if (spare_.empty()) {
            index = static_cast<std::uint32_t>(leaves_.size());
            leaves_.emplace_back();
        } else {
            index = spare_.back();
            spare_.pop_back();
            leaves_[index].count = 0;
        }
        order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(leaf), index);
        first_keys_.insert(first_keys_.begin() + static_cast<std::ptrdiff_t>(leaf), first_key);
    }

    void split(std::size_t leaf) {
        constexpr std::uint32_t kHalf = kLeafBlocks / 2;
        add_leaf(leaf + 1, leaf_at(leaf).keys[kHalf]);
        Leaf& left = leaf_at(leaf);
        Leaf& right = leaf_at(leaf + 1);
        std::copy(left.keys.begin() + kHalf, left.keys.end(), right.keys.begin());
        std::copy(left.blocks.begin() + kHalf, left.blocks.end(), right.blocks.begin());
        right.count = kLeafBlocks - kHalf;
        left.count = kHalf;
    }

    std::vector<Leaf> leaves_;               // unordered; empty ones are spare
    std::vector<std::uint32_t> order_;       // leaves in ascending address order
    std::vector<DeviceAddress> first_keys_;  // first key of each leaf in order_
    std::vector<std::uint32_t> spare_;
    std::size_t size_ = 0;
};

}  // namespace fragtrace::analyzer
