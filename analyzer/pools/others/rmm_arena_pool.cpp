#include "analyzer/pools/others/rmm_arena_pool.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kArenaQuantumBytes = 256;
// Size of a superblock, and the largest request that a stream's own arena serves.
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
    return round_up(requested_bytes, kArenaQuantumBytes);
}

bool RmmArenaPool::begin(StreamId stream) {
    if (begun_) {
        return true;
    }
    const std::uint64_t bytes =
        std::max(kSuperblockBytes,
                 size_.of(device().free_bytes()) / kArenaQuantumBytes * kArenaQuantumBytes);
    const BlockIndex whole = add_segment(bytes, stream);
    if (whole == kNoBlock) {
        return false;
    }
    begun_ = true;
    const auto superblock = superblocks_.try_emplace(0).first;
    superblock->second.end = bytes;
    enter_arena(&*superblock);
    file(&*superblock, whole);
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

// Returns a free block of exactly that size, which is in no superblock's set any more.
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
    const BlockIndex index = first_block_in(found->second, size_bytes);
    unfile(&*found, index);
    if (block(index).size_bytes != size_bytes) {
        file(&*found, split(index, size_bytes));
    } else {
        list_anew(&*found);
    }
    return index;
}

RmmArenaPool::Superblocks::iterator RmmArenaPool::first_fit(std::uint32_t arena,
                                                            std::uint64_t size_bytes) {
    const auto lists = arenas_.find(arena);
    if (lists == arenas_.end()) {
        return superblocks_.end();
    }
    std::uint64_t lowest = ~std::uint64_t{0};
    const auto width = static_cast<std::uint32_t>(std::bit_width(size_bytes));
    for (auto larger = lists->second.upper_bound(width); larger != lists->second.end(); ++larger) {
        lowest = std::min(lowest, *larger->second.begin());
    }
    if (const auto same = lists->second.find(width); same != lists->second.end()) {
        // Superblocks of the same width may be too small, so check their largest free block.
        for (const std::uint64_t offset : same->second) {
            if (offset >= lowest || superblocks_.at(offset).largest() >= size_bytes) {
                lowest = std::min(lowest, offset);
                break;
            }
        }
    }
    return superblocks_.find(lowest);
}

BlockIndex RmmArenaPool::first_block_in(const Superblock& superblock,
                                        std::uint64_t size_bytes) const {
    const auto found =
        std::find_if(superblock.free.begin(), superblock.free.end(), [&](const auto& entry) {
            return block(entry.second).size_bytes >= size_bytes;
        });
    return found->second;  // the caller has made sure that there is one
}

void RmmArenaPool::enter_arena(Superblocks::value_type* superblock) {
    Superblock& entered = superblock->second;
    entered.listed = static_cast<std::uint32_t>(std::bit_width(entered.largest()));
    arenas_[entered.arena][entered.listed].insert(superblock->first);
}

void RmmArenaPool::leave_arena(const Superblocks::value_type& superblock) {
    const auto arena = arenas_.find(superblock.second.arena);
    const auto list = arena->second.find(superblock.second.listed);
    list->second.erase(superblock.first);
    if (list->second.empty()) {  // empty lists are removed to save memory
        arena->second.erase(list);
    }
    if (arena->second.empty()) {
        arenas_.erase(arena);
    }
}

// Updates the superblock's position in its arena after its largest free block has changed.
void RmmArenaPool::list_anew(Superblocks::value_type* superblock) {
    if (std::cmp_not_equal(std::bit_width(superblock->second.largest()),
                           superblock->second.listed)) {
        leave_arena(*superblock);
        enter_arena(superblock);
    }
}

void RmmArenaPool::file(Superblocks::value_type* superblock, BlockIndex index) {
    superblock->second.free.emplace(block(index).offset_bytes, index);
    superblock->second.free_sizes.insert(block(index).size_bytes);
    list_anew(superblock);
}

void RmmArenaPool::unfile(Superblocks::value_type* superblock, BlockIndex index) {
    superblock->second.free.erase(block(index).offset_bytes);
    std::multiset<std::uint64_t>& sizes = superblock->second.free_sizes;
    sizes.erase(sizes.find(block(index).size_bytes));
}

bool RmmArenaPool::is_empty(const Superblocks::value_type& superblock) const {
    return superblock.second.largest() == superblock.second.end - superblock.first;
}

void RmmArenaPool::split_superblock(Superblocks::iterator superblock, std::uint64_t bytes) {
    const BlockIndex low = superblock->second.free.begin()->second;
    unfile(&*superblock, low);
    const BlockIndex high = split(low, bytes);
    const std::uint64_t middle = superblock->first + bytes;
    const auto rest = superblocks_.try_emplace(middle).first;
    rest->second.end = superblock->second.end;
    rest->second.arena = superblock->second.arena;
    superblock->second.end = middle;
    file(&*superblock, low);
    enter_arena(&*rest);
    file(&*rest, high);
}

void RmmArenaPool::move_to(Superblocks::iterator superblock, std::uint32_t arena) {
    leave_arena(*superblock);
    superblock->second.arena = arena;
    enter_arena(&*superblock);
}

void RmmArenaPool::coalesce(Superblocks::iterator superblock) {
    const auto joins = [this](const Superblocks::value_type& low,
                              const Superblocks::value_type& high) {
        return low.second.arena == kGlobalArena && high.second.arena == kGlobalArena &&
               is_empty(low) && is_empty(high);
    };
    const auto join = [this](Superblocks::iterator low, Superblocks::iterator high) {
        const BlockIndex index = low->second.free.begin()->second;
        unfile(&*low, index);
        low->second.end = high->second.end;
        leave_arena(*high);
        superblocks_.erase(high);
        join_with_next(index);
        file(&*low, index);
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
            coalesce(superblock);  // merges `next` into this superblock
        } else {
            superblock = next;
        }
    }
}

void RmmArenaPool::freed(BlockIndex index) {
    const auto superblock = std::prev(superblocks_.upper_bound(block(index).offset_bytes));
    const Superblock& home = superblock->second;
    const BlockIndex next = block(index).next;
    if (next != kNoBlock && block(next).free && block(next).offset_bytes < home.end) {
        unfile(&*superblock, next);
        join_with_next(index);
    }
    const BlockIndex previous = block(index).previous;
    if (previous != kNoBlock && block(previous).free &&
        block(previous).offset_bytes >= superblock->first) {
        unfile(&*superblock, previous);
        join_with_next(previous);
        index = previous;
    }
    file(&*superblock, index);
    if (home.arena == kGlobalArena && is_empty(*superblock)) {
        coalesce(superblock);
    }
}

void RmmArenaPool::forget() {
    superblocks_.clear();
    arenas_.clear();
    begun_ = false;
}

// Searches the superblocks of all arenas, because the pool merges all arenas before a request
// fails.
std::uint64_t RmmArenaPool::largest_free_bytes(const Request&) const {
    std::uint64_t largest = 0;
    for (const auto& [offset, superblock] : superblocks_) {
        largest = std::max(largest, superblock.largest());
    }
    return largest;
}

}  // namespace fragtrace::analyzer
