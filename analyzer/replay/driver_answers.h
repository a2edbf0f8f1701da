// What the driver answered to the recorded allocator, request by request.
#pragma once

#include "analyzer/replay/script.h"

#include <cstddef>
#include <cstdint>
#include <unordered_set>

namespace fragtrace::analyzer {

// Adds the grants and refusals to a script while the events of a timeline are looked at in order.
class DriverAnswers {
  public:
    explicit DriverAnswers(ReplayScript* script) : script_(*script) {}

    // An event of the script's device. Calls that the allocator did not make are passed over.
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
            case EventKind::kMap:  // memory of another process was not asked of the driver
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

    // What is obtained from here on serves another request.
    void forget_grants() { granted_ = 0; }

    // Whether the driver has refused anything since the last request.
    [[nodiscard]] bool refused() const { return script_.refusals.size() > refusals_known_; }

    // All answers since the last request were to this one.
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
    std::uint32_t granted_ = 0;                   // to the request in progress
    std::uint32_t refusals_known_ = 0;            // of script_.refusals: whose request is known
    std::size_t obtained_known_ = 0;              // likewise of script_.obtained
    std::unordered_set<std::uint64_t> imported_;  // handles of other processes' memory
};

}  // namespace fragtrace::analyzer
