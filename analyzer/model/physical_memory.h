// Physical memory of CUDA's virtual memory management (cuMemCreate) and where it is mapped.
//
// A piece lives until its last release and its last unmap, whichever comes later. A mapping of an
// unknown handle gets a piece of its own. Either the creation of the handle was not recorded, or a
// checkpoint repeats a mapping whose handle was released before. Imported handles refer to memory
// of other processes, so their mappings have no piece. Copyable; not thread-safe.
#pragma once

#include "analyzer/model/event.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

struct PhysicalPiece {
    std::uint64_t size_bytes = 0;
    EventIndex created_by = kNoEvent;
    DeviceId device = 0;
    bool of_pool = false;        // a page of a caching pool
    DeviceAddress place = 0;     // RecordedState: its stand-in address; 0 = none
    std::uint32_t holders = 0;   // 1 for its handle plus 1 per mapping; 0 = not in use
    std::uint64_t releases = 0;  // releases until the handle ends
};

class PhysicalMemory {
  public:
    static constexpr std::uint32_t kNone = 0xffffffffu;

    struct Mapping {
        std::uint64_t size_bytes = 0;
        EventIndex mapped_by = kNoEvent;
        std::uint32_t piece = kNone;  // kNone: memory of another process
        bool of_pool = false;
    };

    // The piece that a handle refers to; kNone if it is not known.
    [[nodiscard]] std::uint32_t of_handle(std::uint64_t handle) const {
        const auto found = handles_.find(handle);
        return found == handles_.end() ? kNone : found->second;
    }

    PhysicalPiece& piece(std::uint32_t number) { return pieces_[number]; }

    [[nodiscard]] const PhysicalPiece& piece(std::uint32_t number) const { return pieces_[number]; }

    // Calls `ended(piece)` for each piece whose life ends, before its number is reused.
    template <typename Ended>
    std::uint32_t create(const Event& event, EventIndex index, Ended ended) {
        if (const std::uint32_t former = of_handle(event.address); former != kNone) {
            let_go(former, ended);
        }
        imported_.erase(event.address);
        const std::uint32_t number = add(event.size_bytes, event.device, index);
        pieces_[number].releases = 1;
        handles_[event.address] = number;
        return number;
    }

    // Returns false if the handle does not refer to memory of this process.
    bool retain(std::uint64_t handle) {
        const std::uint32_t number = of_handle(handle);
        if (number != kNone) {
            ++pieces_[number].releases;
        }
        return number != kNone;
    }

    template <typename Ended>
    bool release(std::uint64_t handle, Ended ended) {
        const std::uint32_t number = of_handle(handle);
        if (number == kNone) {
            imported_.erase(handle);
        } else if (--pieces_[number].releases == 0) {
            handles_.erase(handle);
            let_go(number, ended);
        }
        return number != kNone;
    }

    void import(std::uint64_t handle) { imported_.insert(handle); }

    void import_end(std::uint64_t handle) { imported_.erase(handle); }

    // Replaces an earlier mapping at the same address, after calling `replaced(mapping)` with it.
    template <typename Replaced, typename Ended>
    const Mapping& map(const Event& event, EventIndex index, Replaced replaced, Ended ended) {
        std::uint32_t number = of_handle(event.extra);
        if (number != kNone) {
            ++pieces_[number].holders;
        } else if (!imported_.contains(event.extra)) {
            number = add(event.size_bytes, event.device, index);
        }
        const Mapping mapping = {
            event.size_bytes, index, number, (event.flags & kFlagFromAllocator) != 0};
        const auto [entry, is_new] = mappings_.try_emplace(event.address, mapping);
        if (!is_new) {
            replaced(entry->second);
            let_go(entry->second.piece, ended);
            entry->second = mapping;
        }
        return entry->second;
    }

    // Ends the mappings that begin in [address, address + size), or exactly at `address`. Calls
    // `unmapped(address, mapping)` before each of them ends.
    template <typename Unmapped, typename Ended>
    void unmap(DeviceAddress address, std::uint64_t size_bytes, Unmapped unmapped, Ended ended) {
        auto entry = mappings_.lower_bound(address);
        while (entry != mappings_.end() &&
               (entry->first == address || entry->first - address < size_bytes)) {
            unmapped(entry->first, entry->second);
            let_go(entry->second.piece, ended);
            entry = mappings_.erase(entry);
        }
    }

    // Removes everything that belongs to the device. Calls `gone(piece)` for each piece, and
    // `unmapped` as above.
    template <typename Unmapped, typename Gone>
    void reset(DeviceId device, Unmapped unmapped, Gone gone) {
        const auto ends = [this, device](std::uint32_t number) {
            return number != kNone && pieces_[number].device == device;
        };
        for (auto entry = mappings_.begin(); entry != mappings_.end();) {
            if (ends(entry->second.piece)) {
                unmapped(entry->first, entry->second);
                entry = mappings_.erase(entry);
            } else {
                ++entry;
            }
        }
        std::erase_if(handles_, [&ends](const auto& entry) { return ends(entry.second); });
        for (std::uint32_t number = 0; number < pieces_.size(); ++number) {
            if (pieces_[number].holders != 0 && ends(number)) {
                gone(pieces_[number]);
                pieces_[number].holders = 0;
                unused_.push_back(number);
            }
        }
    }

    void clear() { *this = {}; }

    // Calls visit(piece) for every piece that is alive.
    template <typename Visit>
    void for_each(Visit visit) {
        for (PhysicalPiece& piece : pieces_) {
            if (piece.holders != 0) {
                visit(piece);
            }
        }
    }

    // Calls visit(mapping) for every mapping.
    template <typename Visit>
    void for_each_mapping(Visit visit) const {
        for (const auto& [address, mapping] : mappings_) {
            visit(mapping);
        }
    }

    [[nodiscard]] std::size_t entries() const {
        return pieces_.size() + handles_.size() + imported_.size() + mappings_.size();
    }

  private:
    std::uint32_t add(std::uint64_t size_bytes, DeviceId device, EventIndex index) {
        if (unused_.empty()) {
            unused_.push_back(static_cast<std::uint32_t>(pieces_.size()));
            pieces_.emplace_back();
        }
        const std::uint32_t number = unused_.back();
        unused_.pop_back();
        pieces_[number] = {
            .size_bytes = size_bytes, .created_by = index, .device = device, .holders = 1};
        return number;
    }

    template <typename Ended>
    void let_go(std::uint32_t number, Ended ended) {
        if (number == kNone || --pieces_[number].holders != 0) {
            return;
        }
        ended(pieces_[number]);
        unused_.push_back(number);
    }

    std::vector<PhysicalPiece> pieces_;
    std::vector<std::uint32_t> unused_;  // indices of free entries of pieces_
    std::unordered_map<std::uint64_t, std::uint32_t> handles_;
    std::unordered_set<std::uint64_t> imported_;  // imported handles
    std::map<DeviceAddress, Mapping> mappings_;
};

}  // namespace fragtrace::analyzer
