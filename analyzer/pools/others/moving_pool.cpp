#include "analyzer/pools/others/moving_pool.h"

#include "analyzer/support/units.h"

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// The driver's page size.

}  // namespace

// ---- sums ---------------------------------------------------------------------------------------

std::uint64_t MovingPool::rounded_bytes(std::uint64_t requested_bytes) const {
    return round_up(requested_bytes, rules_.quantum_bytes);
}

MovingPool::Amount MovingPool::amount_of(std::uint64_t size_bytes) const {
    if (rules_.page_bytes != 0 && size_bytes >= rules_.page_bytes) {
        return {round_up(size_bytes, rules_.page_bytes), 0};
    }
    return {0, size_bytes};
}

std::uint64_t MovingPool::bytes_of(const Amount& amount) const {
    return amount.whole_bytes + (rules_.page_bytes == 0
                                     ? amount.shared_bytes
                                     : round_up(amount.shared_bytes, rules_.page_bytes));
}

bool MovingPool::keeps(std::uint32_t private_pool) const {
    const auto found = private_pools_.find(private_pool);
    return found != private_pools_.end() && found->second.keeps;
}

std::uint32_t MovingPool::segment_of(const Held& held) const {
    return held.private_pool != 0 && keeps(held.private_pool) ? held.private_pool : 0;
}

void MovingPool::count(const Held& held, bool in) {
    const Amount amount = amount_of(held.size_bytes);
    const auto change = [&amount, in](Amount* sum) {
        sum->whole_bytes += in ? amount.whole_bytes : -amount.whole_bytes;
        sum->shared_bytes += in ? amount.shared_bytes : -amount.shared_bytes;
    };
    if (held.private_pool == 0) {
        change(&movable_);
        return;
    }
    Private& pool = private_pools_[held.private_pool];
    change(&pool.now);
    if (!pool.keeps) {
        change(&movable_);
    } else if (bytes_of(pool.now) > pool.most_bytes) {
        kept_bytes_ += bytes_of(pool.now) - pool.most_bytes;
        pool.most_bytes = bytes_of(pool.now);
    }
}

bool MovingPool::settle() {
    const std::uint64_t held = bytes_of(movable_) + kept_bytes_;
    const std::uint64_t pages = round_up(held, kDriverPageBytes);
    if (pages != taken_bytes_ && !device_->resize(taken_bytes_, pages)) {
        return false;
    }
    taken_bytes_ = pages;
    statistics_.reserved.subtract(statistics_.reserved.current);
    statistics_.reserved.add(held);
    return true;
}

// ---- requests -----------------------------------------------------------------------------------

AllocateResult MovingPool::allocate(const Request& request) {
    Held held{.age = next_age_++,
              .requested_bytes = request.requested_bytes,
              .size_bytes = rounded_bytes(request.requested_bytes),
              .block = request.block,
              .private_pool = request.private_pool,
              .stream = request.stream,
              .live = true};
    const std::uint64_t before = statistics_.reserved.current;
    const Private pool_before =
        held.private_pool != 0 ? private_pools_[held.private_pool] : Private{};
    const std::uint64_t kept_before = kept_bytes_;
    const bool absurd = held.size_bytes < held.requested_bytes || held.size_bytes >> 60 != 0;
    if (!absurd) {
        count(held, true);
    }
    if (absurd || !settle()) {
        if (!absurd) {
            count(held, false);
            kept_bytes_ = kept_before;
            if (held.private_pool != 0) {
                private_pools_[held.private_pool] = pool_before;
            }
        }
        ++statistics_.ooms;
        return {};
    }
    BlockIndex slot = static_cast<BlockIndex>(slots_.size());
    if (free_slots_.empty()) {
        slots_.push_back(held);
    } else {
        slot = free_slots_.back();
        free_slots_.pop_back();
        slots_[slot] = held;
    }
    table_.insert(held.block, slot);
    statistics_.requested.add(held.requested_bytes);
    statistics_.allocated.add(held.size_bytes);
    statistics_.active.add(held.size_bytes);
    statistics_.rounding_bytes += held.size_bytes - held.requested_bytes;
    const std::uint32_t segment = segment_of(held);
    const Amount& packed = segment == 0 ? movable_ : private_pools_[segment].now;
    const std::uint64_t offset_bytes = packed.bytes() - amount_of(held.size_bytes).bytes();
    return {statistics_.reserved.current > before ? Outcome::kGrow : Outcome::kHit,
            {segment, offset_bytes, held.size_bytes}};
}

bool MovingPool::release(BlockId block, const std::vector<PendingOn>& pending) {
    const BlockIndex slot = table_.find(block);
    if (slot == kNoBlock || !slots_[slot].live) {
        return false;
    }
    Held& held = slots_[slot];
    held.live = false;
    statistics_.requested.subtract(held.requested_bytes);
    statistics_.allocated.subtract(held.size_bytes);
    statistics_.rounding_bytes -= held.size_bytes - held.requested_bytes;
    table_.erase(block);
    if (!rules_.waits_for_streams || !pending_.wait(slot, pending)) {
        remove(slot);
    }
    return true;
}

void MovingPool::complete(PendingId id) {
    const BlockIndex slot = pending_.complete(id);
    if (slot != kNoBlock) {
        remove(slot);
    }
}

void MovingPool::remove(BlockIndex slot) {
    count(slots_[slot], false);
    statistics_.active.subtract(slots_[slot].size_bytes);
    slots_[slot] = {};
    free_slots_.push_back(slot);
    settle();
}

bool MovingPool::allocate_at(const Request& request, const Placement&) {
    return allocate(request).outcome != Outcome::kOutOfMemory;
}

void MovingPool::set_private_pool(std::uint32_t private_pool, const PrivatePoolOptions& options) {
    Private& pool = private_pools_[private_pool];
    const bool keeps = options.graph && !options.freeable;
    if (private_pool == 0 || keeps == pool.keeps) {
        return;
    }
    pool.keeps = keeps;
    if (keeps) {
        // Nothing is known about the content of adopted segments: all of their bytes may be in use.
        pool.most_bytes = std::max(bytes_of(pool.now), pool.adopted_bytes);
        movable_.whole_bytes -= pool.now.whole_bytes;
        movable_.shared_bytes -= pool.now.shared_bytes;
        kept_bytes_ += pool.most_bytes;
    } else {
        movable_.whole_bytes += pool.now.whole_bytes;
        movable_.shared_bytes += pool.now.shared_bytes;
        kept_bytes_ -= pool.most_bytes;
        pool.adopted_bytes = 0;
    }
    settle();
}

void MovingPool::clear() {
    table_ = {};
    slots_.clear();
    free_slots_.clear();
    pending_ = {};
    movable_ = {};
    kept_bytes_ = 0;
    for (auto& [number, pool] : private_pools_) {
        pool = {.keeps = pool.keeps};
    }
    for (Gauge* gauge : {&statistics_.requested, &statistics_.allocated, &statistics_.active}) {
        gauge->subtract(gauge->current);
    }
    statistics_.rounding_bytes = 0;
    settle();
}

bool MovingPool::adopt(const HeapSnapshot& heap) {
    clear();
    for (const HeapSegment& segment : heap.segments) {
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            if (block.state == BlockState::kFree) {
                continue;
            }
            const Request request{
                .block = block.allocated_by,
                .requested_bytes = std::min(block.requested_bytes, block.size_bytes),
                .stream = block.stream,
                .private_pool = segment.private_pool};
            if (allocate(request).outcome == Outcome::kOutOfMemory) {
                return false;
            }
        }
        if (segment.private_pool == 0) {
            continue;
        }
        Private& pool = private_pools_[segment.private_pool];
        pool.adopted_bytes += segment.size_bytes;
        if (pool.keeps && pool.adopted_bytes > pool.most_bytes) {
            kept_bytes_ += pool.adopted_bytes - pool.most_bytes;
            pool.most_bytes = pool.adopted_bytes;
        }
    }
    return settle();
}

// ---- placements ---------------------------------------------------------------------------------

std::optional<Placement> MovingPool::find(BlockId block) const {
    const BlockIndex slot = table_.find(block);
    if (slot == kNoBlock) {
        return std::nullopt;
    }
    const std::uint32_t segment = segment_of(slots_[slot]);
    std::uint64_t offset = 0;
    for (const Held& held : slots_) {
        if (held.size_bytes != 0 && held.age < slots_[slot].age && segment_of(held) == segment) {
            offset += amount_of(held.size_bytes).bytes();
        }
    }
    return Placement{segment, offset, slots_[slot].size_bytes};
}

HeapSnapshot MovingPool::snapshot() const {
    HeapSnapshot heap;
    heap.device_free_bytes = device_->free_bytes();
    std::vector<const Held*> packed;
    for (const Held& held : slots_) {
        if (held.size_bytes != 0) {
            packed.push_back(&held);
        }
    }
    std::sort(packed.begin(), packed.end(), [this](const Held* a, const Held* b) {
        return std::pair(segment_of(*a), a->age) < std::pair(segment_of(*b), b->age);
    });
    std::map<std::uint32_t, std::uint64_t> sizes = {{0, bytes_of(movable_)}};
    for (const auto& [number, pool] : private_pools_) {
        if (pool.keeps) {
            sizes[number] = pool.most_bytes;
        }
    }
    std::uint64_t address = kDriverPageBytes;
    std::size_t next = 0;
    for (const auto& [number, size_bytes] : sizes) {
        if (size_bytes == 0) {
            continue;
        }
        HeapSegment segment{.address = address,
                            .size_bytes = size_bytes,
                            .first_block = static_cast<std::uint32_t>(heap.blocks.size()),
                            .private_pool = number,
                            .may_release = number == 0,
                            .obtained_by = number};
        const auto put = [&](HeapBlock block) {
            if (block.size_bytes != 0) {
                block.address = address;
                address += block.size_bytes;
                heap.blocks.push_back(block);
            }
        };
        for (; next < packed.size() && segment_of(*packed[next]) == number; ++next) {
            const Held& held = *packed[next];
            put({.size_bytes = held.size_bytes,
                 .requested_bytes = held.requested_bytes,
                 .allocated_by = held.block,
                 .stream = held.stream,
                 .state = held.live ? BlockState::kLive : BlockState::kPending});
            put({.size_bytes = amount_of(held.size_bytes).bytes() - held.size_bytes});
        }
        put({.size_bytes = segment.address + size_bytes - address});
        segment.block_count = static_cast<std::uint32_t>(heap.blocks.size()) - segment.first_block;
        heap.segments.push_back(segment);
        address = round_up(address, kDriverPageBytes) + kDriverPageBytes;
    }
    return heap;
}

}  // namespace fragtrace::analyzer
