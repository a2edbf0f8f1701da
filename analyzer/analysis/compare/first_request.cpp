#include "analyzer/analysis/compare/first_request.h"

#include "analyzer/model/device_layer.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/replay/script.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// Iterates over the requests of a device: those of its pool, or its device allocations if it has
// none.
class RequestWalk {
  public:
    RequestWalk(const Timeline& timeline, DeviceId device, Symbolizer* symbols)
        : timeline_(timeline),
          device_(device),
          symbols_(*symbols),
          pool_(RecordedState(timeline).has_block_layer(device)) {}

    // Moves to the next request; false at the end.
    bool next() {
        for (; position_ < timeline_.events.size(); ++position_) {
            if (timeline_.events.device(position_) == device_ &&
                wanted(timeline_.events.kind(position_))) {
                at_ = static_cast<EventIndex>(position_++);
                return true;
            }
        }
        at_ = kNoEvent;
        return false;
    }

    [[nodiscard]] std::optional<std::uint64_t> bytes() const {
        return at_ == kNoEvent ? std::optional<std::uint64_t>()
               : pool_         ? timeline_.events[at_].size_bytes
                               : device_bytes(timeline_.events[at_]);
    }

    [[nodiscard]] std::optional<std::uint64_t> time_ns() const {
        return at_ == kNoEvent ? std::optional<std::uint64_t>() : timeline_.events[at_].time_ns;
    }

    std::string label() {
        return at_ == kNoEvent ? std::string() : symbols_.describe(timeline_.events[at_].origin);
    }

  private:
    [[nodiscard]] bool wanted(EventKind kind) const {
        return pool_ ? kind == EventKind::kBlockAlloc || kind == EventKind::kBlockOutOfMemory
                     : is_device_allocation(kind);
    }

    const Timeline& timeline_;
    DeviceId device_;
    Symbolizer& symbols_;
    bool pool_;
    std::size_t position_ = 0;
    EventIndex at_ = kNoEvent;
};

}  // namespace

std::vector<FirstRequest> first_requests(const Timeline& a,
                                         Symbolizer* a_symbols,
                                         const Timeline& b,
                                         Symbolizer* b_symbols) {
    std::vector<FirstRequest> found;
    const std::vector<DeviceId> b_devices = replayable_devices(b);
    for (const DeviceId device : replayable_devices(a)) {
        if (!std::binary_search(b_devices.begin(), b_devices.end(), device)) {
            continue;
        }
        RequestWalk of_a(a, device, a_symbols);
        RequestWalk of_b(b, device, b_symbols);
        for (std::uint64_t number = 0;; ++number) {
            const bool a_goes_on = of_a.next();
            const bool b_goes_on = of_b.next();
            if (!a_goes_on && !b_goes_on) {
                break;
            }
            if (of_a.bytes() != of_b.bytes()) {
                found.push_back({device,
                                 number,
                                 of_a.bytes(),
                                 of_b.bytes(),
                                 of_a.label(),
                                 of_b.label(),
                                 of_a.time_ns(),
                                 of_b.time_ns()});
                break;
            }
        }
    }
    return found;
}

}  // namespace fragtrace::analyzer
