// A small caching allocator (best fit, split, coalesce, release and retry) that records its actions
// as the data of a page.
#pragma once

#include "analyzer/report/page/page_data.h"
#include "analyzer/support/units.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace fragtrace::page_test {

using namespace analyzer;

class Pool {
  public:
    Pool(PageDevice* device, std::uint64_t budget_bytes)
        : device_(device), budget_bytes_(budget_bytes) {}

    std::uint64_t now_ns = 1'000'000;

    // The block's row. -1 if the request fails even after releasing the cache.
    std::int64_t allocate(std::uint64_t requested_bytes, std::uint32_t stack) {
        now_ns += 3000;
        const std::uint64_t size_bytes = round_up(requested_bytes, 512);
        auto hole = free_by_size_.lower_bound({size_bytes, 0});
        if (hole == free_by_size_.end()) {
            if (!grow(size_bytes)) {
                release_cache();
                ++retries;
                now_ns += 2'000'000;
                if (!grow(size_bytes)) return -1;
                device_->markers.push_back(
                    {now_ns, PageMarkerKind::kRetry, "cache released, then served"});
            }
            hole = free_by_size_.lower_bound({size_bytes, 0});
        }
        const auto [have, address] = *hole;
        free_by_size_.erase(hole);
        free_.erase(address);
        const bool small = size_bytes < kMiB;
        if (have - size_bytes >= (small ? 512 : kMiB))
            add_free(address + size_bytes, have - size_bytes);
        const std::uint64_t given = have - size_bytes >= (small ? 512 : kMiB) ? size_bytes : have;
        BlockLives& blocks = device_->blocks;
        blocks.start_ns.push_back(now_ns);
        blocks.freed_ns.push_back(kNeverNs);
        blocks.end_ns.push_back(kNeverNs);
        blocks.address.push_back(address);
        blocks.size_bytes.push_back(given);
        blocks.requested_bytes.push_back(requested_bytes);
        blocks.stack.push_back(stack);
        blocks.stream.push_back(0);
        ++live_in_[segment_of(address)];
        return static_cast<std::int64_t>(blocks.size()) - 1;
    }

    void free(std::int64_t row) {
        now_ns += 1500;
        BlockLives& blocks = device_->blocks;
        const auto i = static_cast<std::size_t>(row);
        blocks.freed_ns[i] = blocks.end_ns[i] = now_ns;
        const std::uint64_t address = blocks.address[i];
        --live_in_[segment_of(address)];
        std::uint64_t begin = address;
        std::uint64_t end = address + blocks.size_bytes[i];
        const std::uint64_t segment_begin = segment_of(address);
        const std::uint64_t segment_end = segment_begin + segments_[segment_begin].size_bytes;
        if (auto next = free_.find(end); next != free_.end() && end < segment_end) {
            end += next->second;
            erase_free(next->first);
        }
        if (auto before = free_.lower_bound(begin);
            before != free_.begin() && begin > segment_begin) {
            --before;
            if (before->first + before->second == begin) {
                begin = before->first;
                erase_free(begin);
            }
        }
        add_free(begin, end - begin);
    }

    void release_cache() {
        for (auto at = segments_.begin(); at != segments_.end();) {
            if (live_in_[at->first] > 0) {
                ++at;
                continue;
            }
            erase_free(at->first);
            reserved_ -= at->second.size_bytes;
            at->second.end_ns = ++now_ns;
            device_->segments.push_back(at->second);
            gaps_.insert({at->first, at->second.size_bytes});
            at = segments_.erase(at);
        }
    }

    // Call once, after the last segment was allocated or released.
    void write_segments() {
        for (const auto& [address, segment] : segments_)
            device_->segments.push_back(segment);
    }

    void finish() { device_->end_ns = now_ns + 1'000'000; }

    std::uint64_t free_bytes() const {
        std::uint64_t sum = 0;
        for (const auto& [address, size] : free_)
            sum += size;
        return sum;
    }

    std::uint64_t largest() const {
        return free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first;
    }

    std::uint64_t device_free() const { return budget_bytes_ - reserved_; }

    std::uint64_t segment_of(std::uint64_t address) const {
        return std::prev(segments_.upper_bound(address))->first;
    }

    std::uint64_t free_in(std::uint64_t segment) const {
        std::uint64_t sum = 0;
        const std::uint64_t end = segment + segments_.at(segment).size_bytes;
        for (auto at = free_.lower_bound(segment); at != free_.end() && at->first < end; ++at) {
            sum += at->second;
        }
        return sum;
    }

    std::uint64_t segment_size(std::uint64_t segment) const {
        return segments_.at(segment).size_bytes;
    }

    std::uint64_t retries = 0;

  private:
    bool grow(std::uint64_t size_bytes) {
        const std::uint64_t want = size_bytes < kMiB ? 2 * kMiB
                                   : size_bytes < 10 * kMiB
                                       ? 20 * kMiB
                                       : (size_bytes + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
        if (want > device_free()) return false;
        std::uint64_t address = next_address_;
        for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
            if (gap->second < want) continue;
            address = gap->first;
            const std::uint64_t rest = gap->second - want;
            gaps_.erase(gap);
            if (rest > 0) gaps_.insert({address + want, rest});
            break;
        }
        if (address == next_address_) next_address_ += want;
        now_ns += 200'000;
        segments_[address] = {
            .start_ns = now_ns, .address = address, .size_bytes = want, .small = want == 2 * kMiB};
        live_in_[address] = 0;
        reserved_ += want;
        add_free(address, want);
        return true;
    }

    void add_free(std::uint64_t address, std::uint64_t size_bytes) {
        free_[address] = size_bytes;
        free_by_size_.insert({size_bytes, address});
    }

    void erase_free(std::uint64_t address) {
        const auto found = free_.find(address);
        free_by_size_.erase({found->second, address});
        free_.erase(found);
    }

    PageDevice* device_;
    std::uint64_t budget_bytes_;
    std::map<std::uint64_t, std::uint64_t> free_;  // address -> size
    std::set<std::pair<std::uint64_t, std::uint64_t>> free_by_size_;
    std::map<std::uint64_t, SegmentLife> segments_;
    std::map<std::uint64_t, std::uint64_t> live_in_;
    std::map<std::uint64_t, std::uint64_t> gaps_;
    std::uint64_t next_address_ = 0x7f1200000000;
    std::uint64_t reserved_ = 0;
};

}  // namespace fragtrace::page_test
