#include "analyzer/model/request_outcomes.h"

namespace fragtrace::analyzer {

RequestOutcomes::RequestOutcomes(const std::function<bool(DeviceId)>& has_pool) {
    for (DeviceId device = 0; device <= kMaxDevices; ++device) {
        devices_[device].has_pool = has_pool(device);
    }
}

RequestOutcome RequestOutcomes::visit(EventIndex index, const Event& event) {
    switch (event.kind) {
        case EventKind::kAllocRefused:
            return visit_refusal(index, event);
        case EventKind::kBlockOutOfMemory:
            devices_[event.device].refused = false;
            return RequestOutcome::kOutOfMemory;
        case EventKind::kBlockAlloc: {
            const bool refused = devices_[event.device].refused;
            devices_[event.device].refused = false;
            return refused ? RequestOutcome::kRetry : RequestOutcome::kNone;
        }
        case EventKind::kCallOutOfMemory:
            return RequestOutcome::kCallOutOfMemory;
        default:
            return RequestOutcome::kNone;
    }
}

RequestOutcome RequestOutcomes::visit_refusal(EventIndex index, const Event& event) {
    Device& device = devices_[event.device];
    if (!device.has_pool) {
        return RequestOutcome::kOutOfMemory;
    }
    if ((event.flags & kFlagFromAllocator) != 0) {
        device.refused = true;
        return RequestOutcome::kNone;
    }
    if (event.size_bytes == kUnknown64) {
        return RequestOutcome::kNone;
    }
    // A library that immediately retries with the same size makes one request.
    const bool again = device.library_event != kNoEvent && device.library_event + 1 == index &&
                       device.library_bytes == event.size_bytes;
    device.library_event = index;
    device.library_bytes = event.size_bytes;
    return again ? RequestOutcome::kNone : RequestOutcome::kLibraryRefused;
}

}  // namespace fragtrace::analyzer
