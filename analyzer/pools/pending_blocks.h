// Freed blocks that cannot be reused until events of other streams have completed. Not thread-safe.
#pragma once

#include "analyzer/pools/free_set.h"
#include "analyzer/pools/pool.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

class PendingBlocks {
  public:
    // Returns false if the block does not have to wait for any event.
    bool wait(BlockIndex block, const std::vector<Pool::PendingOn>& events) {
        std::uint32_t waits_for = 0;
        for (const Pool::PendingOn& on : events) {
            waits_for += block_of_.emplace(on.id, block).second ? 1 : 0;
        }
        if (waits_for != 0) {
            events_left_[block] = waits_for;
        }
        return waits_for != 0;
    }

    // Returns the block for which this was the last missing event, or kNoBlock if there is none.
    BlockIndex complete(PendingId id) {
        const auto found = block_of_.find(id);
        if (found == block_of_.end()) {
            return kNoBlock;
        }
        const BlockIndex block = found->second;
        block_of_.erase(found);
        const auto left = events_left_.find(block);
        if (--left->second != 0) {
            return kNoBlock;
        }
        events_left_.erase(left);
        return block;
    }

  private:
    std::unordered_map<PendingId, BlockIndex> block_of_;
    std::unordered_map<BlockIndex, std::uint32_t> events_left_;
};

}  // namespace fragtrace::analyzer
