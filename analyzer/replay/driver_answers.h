// Collects the driver's answers to the recorded allocator, request by request.
#pragma once

#include "analyzer/replay/script.h"

#include <cstddef>
#include <cstdint>
#include <unordered_set>

namespace fragtrace::analyzer {

// Adds the driver's grants and refusals to a script. Events of a timeline must be passed in order.
class DriverAnswers {
  public:
    explicit DriverAnswers(ReplayScript* script) : script_(*script) {}

    // Processes an event of the script's device. Ignores calls that the allocator did not make.
    void look_at(const Event& event) {
        const bool of_allocator = (event.flags & kFlagFromAllocator) != 0;
        switch (event.kind) {
            case EventKind::kImport:
                imported_.insert(event.address);
                break;
            case EventKind::kPhysicalCreate:
                imported_.erase(event.address);
                break;
            case EventKind::kDeviceAlloc:
                if (of_allocator) {
                    ++granted_;
                    script_.obtained.push_back({event.address, event.size_bytes, kNoEvent});
                }
                break;
            case EventKind::kMap:  // imported memory of another process was not requested from the
                                   // driver
                granted_ += of_allocator && !imported_.contains(event.extra) ? 1 : 0;
                break;
            case EventKind::kAllocRefused:
                if (of_allocator) {
                    script_.refusals.push_back({event.size_bytes, granted_});
                }
                break;
            default:
                break;
        }
    }

    // From here on, grants belong to another request.
    void forget_grants() { granted_ = 0; }

    // Whether the driver has refused anything since the last finished request.
    [[nodiscard]] bool refused() const { return script_.refusals.size() > refusals_known_; }

    // Assigns all answers since the last request to this one.
    void end_request(Step* request) {
        request->first_refusal = refusals_known_;
        request->refusal_count =
            static_cast<std::uint32_t>(script_.refusals.size()) - refusals_known_;
        refusals_known_ += request->refusal_count;
        for (; obtained_known_ < script_.obtained.size(); ++obtained_known_) {
            script_.obtained[obtained_known_].request = request->event;
        }
        granted_ = 0;
    }

  private:
    ReplayScript& script_;
    std::uint32_t granted_ = 0;                   // grants to the current request
    std::uint32_t refusals_known_ = 0;            // refusals already assigned to a request
    std::size_t obtained_known_ = 0;              // segments already assigned to a request
    std::unordered_set<std::uint64_t> imported_;  // handles of other processes' memory
};

}  // namespace fragtrace::analyzer
