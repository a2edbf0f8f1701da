// The segments of one device, ordered by address: what its pool holds from the driver.
//
// A cudaMalloc is one segment; of an expandable reservation every maximal mapped range is one.
// Few and rarely changed, looked up on every block event: a sorted vector and a memory of the
// last hit. Not thread-safe.
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct RecordedSegment {
    DeviceAddress address = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t active_bytes = 0;     // live and pending blocks in it
    DeviceAddress reservation = 0;      // expandable: the reservation that it lies in
    std::uint64_t page_bytes = 0;       // expandable: size of the physical handles, else 0
    StreamId stream = kNoStream;        // of the first block in it
    std::uint32_t private_pool = 0;     // likewise
    EventIndex obtained_by = kNoEvent;  // expandable: of its reservation
    std::uint64_t reservation_bytes = 0;

    [[nodiscard]] DeviceAddress end() const { return address + size_bytes; }

    [[nodiscard]] bool expandable() const { return page_bytes != 0; }
};

class SegmentMap {
  public:
    [[nodiscard]] const std::vector<RecordedSegment>& segments() const { return segments_; }

    // The segment that holds this address; nullptr when there is none.
    RecordedSegment* find(DeviceAddress address);
    // Does any segment overlap [address, address + size)?
    [[nodiscard]] bool overlaps(DeviceAddress address, std::uint64_t size_bytes) const;

    // Adds a segment; an expandable one grows together with its neighbours of the same
    // reservation and page size. Must not overlap another. Gives the resulting segment.
    RecordedSegment* add(const RecordedSegment& segment);

    // Takes [begin, end) away: segments are cut, split or removed. `active_bytes(begin, end)` must
    // say how many active bytes a remaining part holds. Gives the bytes taken away.
    template <typename ActiveBytes>
    std::uint64_t cut(DeviceAddress begin, DeviceAddress end, ActiveBytes active_bytes) {
        std::uint64_t taken = 0;
        std::vector<RecordedSegment> parts;
        const std::size_t first = first_ending_after(begin);
        std::size_t last = first;
        for (; last < segments_.size() && segments_[last].address < end; ++last) {
            const RecordedSegment& segment = segments_[last];
            const DeviceAddress from = begin > segment.address ? begin : segment.address;
            const DeviceAddress to = end < segment.end() ? end : segment.end();
            taken += to - from;
            const auto keep = [&](DeviceAddress part_begin, DeviceAddress part_end) {
                if (part_begin < part_end) {
                    RecordedSegment part = segment;
                    part.address = part_begin;
                    part.size_bytes = part_end - part_begin;
                    part.active_bytes = active_bytes(part_begin, part_end);
                    parts.push_back(part);
                }
            };
            keep(segment.address, from);
            keep(to, segment.end());
        }
        replace(first, last, parts);
        return taken;
    }

    void clear();

  private:
    // Index of the first segment whose end lies after `address`.
    [[nodiscard]] std::size_t first_ending_after(DeviceAddress address) const;
    void replace(std::size_t first, std::size_t last, const std::vector<RecordedSegment>& parts);

    std::vector<RecordedSegment> segments_;
    std::size_t last_hit_ = 0;
};

}  // namespace fragtrace::analyzer
