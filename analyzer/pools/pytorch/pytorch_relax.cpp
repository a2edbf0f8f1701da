// Relaxations of the simulated allocator. They show which constraint made a request fail.
#include "analyzer/pools/pytorch/pytorch_blocks.h"

namespace fragtrace::analyzer {

bool PytorchPool::relax(Relaxation relaxation) {
    switch (relaxation) {
        case Relaxation::kPendingComplete:
            synchronize();
            return true;
        case Relaxation::kReleaseFree:
            release_cached();
            return true;
        case Relaxation::kExactSegmentSize:
            exact_segments_ = true;
            return true;
        case Relaxation::kNoLimit:
            limits_lifted_ = true;
            limit_bytes_ = kNoLimit;
            return true;
        case Relaxation::kOneStream:
            one_stream_ = true;
            rebuild_sets();
            return true;
        case Relaxation::kOnePool:
            merge_pools();
            return true;
    }
    return false;
}

// Moves all blocks except those of graph pools to the default large pool. Statistics by size class
// and by private pool are meaningless afterwards. The totals stay correct.
void PytorchPool::merge_pools() {
    one_pool_ = true;
    constexpr PoolIndex kAll = 1;
    for (std::uint32_t i = 1; i < pairs_.size(); ++i) {
        if (!pairs_[i].options.graph) {
            pairs_[i].merged = true;
            pairs_[0].reserved.current += pairs_[i].reserved.current;
            pairs_[i].reserved.current = 0;
        }
    }
    for (Block& block : blocks_) {
        if (block.pool / 2 == 0 || pair(block.pool).merged) {
            block.pool = kAll;
        }
    }
    rebuild_sets();
}

// Rebuilds the sets after blocks changed pools or streams changed slots.
void PytorchPool::rebuild_sets() {
    sets_.clear();
    for (BlockPool& pool : pools_) {
        pool.free = {};
        pool.unmapped = {};
        pool.releasable_bytes = 0;
    }
    for (BlockIndex index = 0; index < blocks_.size(); ++index) {
        if (blocks_[index].state == State::kFree) {
            const std::uint32_t age_base = blocks_[index].age_base;
            insert_free(index);
            blocks_[index].age_base = age_base;
        } else if (blocks_[index].state == State::kUnmapped) {
            insert_unmapped(index);
        }
    }
}

}  // namespace fragtrace::analyzer
