// Segments that have an address reservation of their own. Allocators of the program
// (CUDAPluggableAllocator, an interposed cudaMalloc) make them: they map memory into the whole
// reservation at once. PyTorch maps an expandable segment page by page.
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>
#include <unordered_map>

namespace fragtrace::analyzer {

inline bool is_own_segment(const Event& map,
                           DeviceAddress reservation,
                           std::uint64_t reservation_bytes) {
    return map.address == reservation && map.size_bytes == reservation_bytes;
}

// The allocators' reservations of a recorded process. All reserve and free events must be passed in
// order.
class OwnSegments {
  public:
    void reserve(const Event& event) {
        if ((event.flags & kFlagFromAllocator) != 0) {
            reserved_bytes_[event.address] = event.size_bytes;
        }
    }

    void free(DeviceAddress address) { reserved_bytes_.erase(address); }

    void clear() { reserved_bytes_.clear(); }

    [[nodiscard]] bool has(const Event& map) const {
        const auto found = reserved_bytes_.find(map.address);
        return found != reserved_bytes_.end() && is_own_segment(map, found->first, found->second);
    }

  private:
    std::unordered_map<DeviceAddress, std::uint64_t> reserved_bytes_;
};

}  // namespace fragtrace::analyzer
