#include "analyzer/pools/rmm_arena_pool.h"

#include <algorithm>
#include <iterator>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kQuantumBytes = 256;
// Of a superblock, and what a stream's own arena serves at most.
constexpr std::uint64_t kSuperblockBytes = std::uint64_t{1} << 20;
constexpr std::uint32_t kGlobalArena = 0;

}  // namespace

Result<std::unique_ptr<Pool>> RmmArenaPool::make(std::string_view config,
                                                 std::unique_ptr<Device> device) {
    auto pool =
        std::unique_ptr<RmmArenaPool>(new RmmArenaPool(std::string(config), std::move(device)));
    const Status read = read_pool_settings("rmm-arena", config, {{"arena_size", &pool->size_}});
    if (!read) {
        return read.error();
    }
    if (pool->size_.percent == 0 && pool->size_.bytes < kSuperblockBytes) {
        return Error{ErrorCode::kUsage, "pool 'rmm-arena': arena_size must be at least 1MiB"};
    }
    return std::unique_ptr<Pool>(std::move(pool));
}

std::uint64_t RmmArenaPool::rounded_bytes(std::uint64_t requested_bytes) const {
    return round_up(requested_bytes, kQuantumBytes);
}

bool RmmArenaPool::begin(StreamId stream) {
    if (begun_) {
        return true;
    }
    const std::uint64_t bytes =
        std::max(kSuperblockBytes, size_.of(device().free_bytes()) / kQuantumBytes * kQuantumBytes);
    const BlockIndex whole = add_segment(bytes, stream);
    if (whole == kNoBlock) {
        return false;
    }
    begun_ = true;
    Superblock& superblock = superblocks_[0];
    superblock.end = bytes;
    file(&superblock, whole);
    arenas_[kGlobalArena].insert(0);
    return true;
}

AllocateResult RmmArenaPool::allocate(const Request& request) {
    const std::uint64_t size_bytes = rounded_bytes(request.requested_bytes);
    const bool first = !begun_;
    if (size_bytes < request.requested_bytes || !begin(request.stream)) {
        return out_of_memory();
    }
    const std::uint32_t arena = size_bytes > kSuperblockBytes ? kGlobalArena : request.stream + 1U;
    BlockIndex index = serve(arena, size_bytes);
    if (index == kNoBlock) {
        defragment();
        index = serve(arena, size_bytes);
    }
    if (index == kNoBlock) {
        return out_of_memory();
    }
    return hand_out(index, request, first ? Outcome::kGrow : Outcome::kHit);
}

// A free block of exactly that size, in no superblock's set any more.
BlockIndex RmmArenaPool::serve(std::uint32_t arena, std::uint64_t size_bytes) {
    auto found = first_fit(arena, size_bytes);
    if (found == superblocks_.end() && arena != kGlobalArena) {
        found = first_fit(kGlobalArena, size_bytes);
        if (found != superblocks_.end()) {
            if (is_empty(*found) && found->second.end - found->first >= 2 * kSuperblockBytes) {
                split_superblock(found, kSuperblockBytes);
            }
            move_to(found, arena);
        }
    } else if (found != superblocks_.end() && arena == kGlobalArena && is_empty(*found) &&
               found->second.end - found->first >= size_bytes + kSuperblockBytes) {
        split_superblock(found, size_bytes);
    }
    if (found == superblocks_.end()) {
        return kNoBlock;
    }
    Superblock& superblock = found->second;
    const BlockIndex index = first_block_in(superblock, size_bytes);
    unfile(&superblock, index);
    if (block(index).size_bytes != size_bytes) {
        file(&superblock, split(index, size_bytes));
    }
    return index;
}

RmmArenaPool::Superblocks::iterator RmmArenaPool::first_fit(std::uint32_t arena,
                                                            std::uint64_t size_bytes) {
    for (const std::uint64_t offset : arenas_[arena]) {
        const auto superblock = superblocks_.find(offset);
        if (superblock->second.largest() >= size_bytes) {
            return superblock;
        }
    }
    return superblocks_.end();
}

BlockIndex RmmArenaPool::first_block_in(const Superblock& superblock,
                                        std::uint64_t size_bytes) const {
    const auto found =
        std::find_if(superblock.free.begin(), superblock.free.end(), [&](const auto& entry) {
            return block(entry.second).size_bytes >= size_bytes;
        });
    return found->second;  // the caller knows that there is one
}

void RmmArenaPool::file(Superblock* superblock, BlockIndex index) {
    superblock->free.emplace(block(index).offset_bytes, index);
    superblock->free_sizes.insert(block(index).size_bytes);
}

void RmmArenaPool::unfile(Superblock* superblock, BlockIndex index) {
    superblock->free.erase(block(index).offset_bytes);
    superblock->free_sizes.erase(superblock->free_sizes.find(block(index).size_bytes));
}

bool RmmArenaPool::is_empty(const Superblocks::value_type& superblock) const {
    return superblock.second.largest() == superblock.second.end - superblock.first;
}

void RmmArenaPool::split_superblock(Superblocks::iterator superblock, std::uint64_t bytes) {
    const BlockIndex low = superblock->second.free.begin()->second;
    unfile(&superblock->second, low);
    const BlockIndex high = split(low, bytes);
    const std::uint64_t middle = superblock->first + bytes;
    Superblock& rest = superblocks_[middle];
    rest.end = superblock->second.end;
    rest.arena = superblock->second.arena;
    superblock->second.end = middle;
    file(&superblock->second, low);
    file(&rest, high);
    arenas_[rest.arena].insert(middle);
}

void RmmArenaPool::move_to(Superblocks::iterator superblock, std::uint32_t arena) {
    arenas_[superblock->second.arena].erase(superblock->first);
    superblock->second.arena = arena;
    arenas_[arena].insert(superblock->first);
}

void RmmArenaPool::coalesce(Superblocks::iterator superblock) {
    const auto joins = [this](const Superblocks::value_type& low,
                              const Superblocks::value_type& high) {
        return low.second.arena == kGlobalArena && high.second.arena == kGlobalArena &&
               is_empty(low) && is_empty(high);
    };
    const auto join = [this](Superblocks::iterator low, Superblocks::iterator high) {
        const BlockIndex index = low->second.free.begin()->second;
        unfile(&low->second, index);
        low->second.end = high->second.end;
        arenas_[kGlobalArena].erase(high->first);
        superblocks_.erase(high);
        join_with_next(index);
        file(&low->second, index);
    };
    const auto next = std::next(superblock);
    if (next != superblocks_.end() && joins(*superblock, *next)) {
        join(superblock, next);
    }
    if (superblock != superblocks_.begin() && joins(*std::prev(superblock), *superblock)) {
        join(std::prev(superblock), superblock);
    }
}

void RmmArenaPool::defragment() {
    for (auto superblock = superblocks_.begin(); superblock != superblocks_.end(); ++superblock) {
        if (superblock->second.arena != kGlobalArena) {
            move_to(superblock, kGlobalArena);
        }
    }
    for (auto superblock = superblocks_.begin(); superblock != superblocks_.end();) {
        const auto next = std::next(superblock);
        if (next != superblocks_.end() && is_empty(*superblock) && is_empty(*next)) {
            coalesce(superblock);  // takes in `next`
        } else {
            superblock = next;
        }
    }
}

void RmmArenaPool::freed(BlockIndex index) {
    const auto superblock = std::prev(superblocks_.upper_bound(block(index).offset_bytes));
    Superblock& home = superblock->second;
    const BlockIndex next = block(index).next;
    if (next != kNoBlock && block(next).free && block(next).offset_bytes < home.end) {
        unfile(&home, next);
        join_with_next(index);
    }
    const BlockIndex previous = block(index).previous;
    if (previous != kNoBlock && block(previous).free &&
        block(previous).offset_bytes >= superblock->first) {
        unfile(&home, previous);
        join_with_next(previous);
        index = previous;
    }
    file(&home, index);
    if (home.arena == kGlobalArena && is_empty(*superblock)) {
        coalesce(superblock);
    }
}

void RmmArenaPool::forget() {
    superblocks_.clear();
    arenas_.clear();
    begun_ = false;
}

// In any superblock: before it fails the pool brings all of them together.
std::uint64_t RmmArenaPool::largest_free_bytes(const Request&) const {
    std::uint64_t largest = 0;
    for (const auto& [offset, superblock] : superblocks_) {
        largest = std::max(largest, superblock.largest());
    }
    return largest;
}

}  // namespace fragtrace::analyzer
