// The segments of one device, ordered by address: the memory that its pool reserved.
//
// A cudaMalloc is one segment. In an expandable reservation, every maximal mapped range is one
// segment. Segments are few and change rarely, but every block event looks one up. They are stored
// as a sorted list in leaves. The last hits are remembered. An insertion moves the entries of one
// leaf only, however many segments there are. Pointers are valid until the next insertion or
// removal. Not thread-safe.
#pragma once

#include "analyzer/model/event.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace fragtrace::analyzer {

struct RecordedSegment {
    DeviceAddress address = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t active_bytes = 0;     // live and pending blocks in the segment
    DeviceAddress reservation = 0;      // expandable: address of its reservation
    std::uint64_t page_bytes = 0;       // expandable: size of the physical handles, else 0
    StreamId stream = kNoStream;        // stream of the first block in it
    std::uint32_t private_pool = 0;     // pool of the first block in it
    EventIndex obtained_by = kNoEvent;  // allocating event; expandable: the reservation's
    std::uint64_t reservation_bytes = 0;

    [[nodiscard]] DeviceAddress end() const { return address + size_bytes; }

    [[nodiscard]] bool expandable() const { return page_bytes != 0; }
};

class SegmentMap {
    using Leaf = std::vector<RecordedSegment>;  // never empty
    using Leaves = std::vector<Leaf>;

  public:
    class Iterator {
      public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = RecordedSegment;
        using difference_type = std::ptrdiff_t;
        using pointer = const RecordedSegment*;
        using reference = const RecordedSegment&;

        Iterator() = default;

        Iterator(const Leaves* leaves, std::size_t leaf) : leaves_(leaves), leaf_(leaf) {}

        reference operator*() const { return (*leaves_)[leaf_][slot_]; }

        pointer operator->() const { return &**this; }

        Iterator& operator++() {
            if (++slot_ == (*leaves_)[leaf_].size()) {
                ++leaf_;
                slot_ = 0;
            }
            return *this;
        }

        Iterator operator++(int) {
            Iterator before = *this;
            ++*this;
            return before;
        }

        bool operator==(const Iterator&) const = default;

      private:
        const Leaves* leaves_ = nullptr;
        std::size_t leaf_ = 0;
        std::size_t slot_ = 0;
    };

    // All segments, ascending.
    class View {
      public:
        View(const Leaves* leaves, std::size_t size) : leaves_(leaves), size_(size) {}

        [[nodiscard]] Iterator begin() const { return {leaves_, 0}; }

        [[nodiscard]] Iterator end() const { return {leaves_, leaves_->size()}; }

        [[nodiscard]] std::size_t size() const { return size_; }

        [[nodiscard]] bool empty() const { return size_ == 0; }

        [[nodiscard]] const RecordedSegment& front() const { return leaves_->front().front(); }

        [[nodiscard]] const RecordedSegment& back() const { return leaves_->back().back(); }

        [[nodiscard]] const RecordedSegment& operator[](std::size_t index) const {
            std::size_t leaf = 0;
            while (index >= (*leaves_)[leaf].size()) {
                index -= (*leaves_)[leaf++].size();
            }
            return (*leaves_)[leaf][index];
        }

      private:
        const Leaves* leaves_;
        std::size_t size_;
    };

    [[nodiscard]] View segments() const { return {&leaves_, size_}; }

    // The segment that contains this address; nullptr if there is none.
    RecordedSegment* find(DeviceAddress address);
    // The last segment that begins at or before this address; nullptr if there is none.
    [[nodiscard]] const RecordedSegment* at_or_before(DeviceAddress address) const;
    // Does any segment overlap [address, address + size)?
    [[nodiscard]] bool overlaps(DeviceAddress address, std::uint64_t size_bytes) const;

    // Adds a segment and returns the result. An expandable segment merges with its neighbours of
    // the same reservation and page size. It must not overlap another segment.
    RecordedSegment* add(const RecordedSegment& segment);

    // Removes [begin, end): segments are cut, split or removed. `active_bytes(begin, end)` must
    // return the active bytes in a remaining part. Returns the number of bytes removed.
    template <typename ActiveBytes>
    std::uint64_t cut(DeviceAddress begin, DeviceAddress end, ActiveBytes active_bytes) {
        std::uint64_t taken = 0;
        for (Place at = first_ending_after(begin); is_there(at) && segment_at(at).address < end;
             at = first_ending_after(begin)) {
            const RecordedSegment segment = segment_at(at);
            const DeviceAddress from = begin > segment.address ? begin : segment.address;
            const DeviceAddress to = end < segment.end() ? end : segment.end();
            taken += to - from;
            erase(at);
            const auto keep = [&](DeviceAddress part_begin, DeviceAddress part_end) {
                if (part_begin < part_end) {
                    RecordedSegment part = segment;
                    part.address = part_begin;
                    part.size_bytes = part_end - part_begin;
                    part.active_bytes = active_bytes(part_begin, part_end);
                    insert(part);
                }
            };
            keep(segment.address, from);
            keep(to, segment.end());
        }
        return taken;
    }

    void clear();

  private:
    struct Place {
        std::size_t leaf = 0;
        std::size_t slot = 0;
    };

    [[nodiscard]] bool is_there(Place at) const { return at.leaf < leaves_.size(); }

    [[nodiscard]] const RecordedSegment& segment_at(Place at) const {
        return leaves_[at.leaf][at.slot];
    }

    // The first segment whose end lies after `address`.
    [[nodiscard]] Place first_ending_after(DeviceAddress address) const;
    RecordedSegment* insert(const RecordedSegment& segment);
    void erase(Place at);

    Leaves leaves_;
    std::size_t size_ = 0;
    // Where segments were found, by address. A place is checked before it is used.
    std::array<Place, 64> hits_ = {};
};

}  // namespace fragtrace::analyzer
