#include "analyzer/replay/recorded_device.h"

namespace fragtrace::analyzer {

bool RecordedDevice::take(std::uint64_t size_bytes) {
    if (by_capacity_) {
        obtained_ = {};
        if (size_bytes > free_bytes()) {
            return false;
        }
    } else if (!refusals_.empty() && refusals_.front().size_bytes == size_bytes &&
               refusals_.front().granted_before <= granted_) {
        refusals_ = refusals_.subspan(1);
        return false;
    }
    ++granted_;
    used_bytes_ += size_bytes;
    address_ = 0;
    if (!obtained_.empty() && obtained_.front().size_bytes == size_bytes) {
        address_ = obtained_.front().address;
        obtained_ = obtained_.subspan(1);
    }
    return true;
}

}  // namespace fragtrace::analyzer
