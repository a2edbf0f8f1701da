// Measures the device memory of a call for which no API gives a size: contexts and code.
//
// It is the change of the device's free memory, so it includes changes by other processes and
// threads. If a context of that device is current, the driver is asked, which creates no context.
// Otherwise NVML is asked, if the caller accepts the time.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

class MemoryDelta {
  public:
    // `device`: kDeviceUnknown means the current device.
    MemoryDelta(uint16_t device, const void* caller) : device_(device), caller_(caller) {}

    void before(bool allow_nvml);

    // Returns the decrease of the device's free memory in bytes; 0 if it increased; kUnknown64 if
    // unknown.
    [[nodiscard]] uint64_t after() const;

    // Returns the source of the measurement, as the text of a fact.
    [[nodiscard]] const char* source() const;

  private:
    enum class Source : uint8_t { kNone, kDriver, kNvml };

    uint16_t device_;
    Source source_ = Source::kNone;
    uint64_t free_bytes_ = 0;
    const void* caller_;
};

}  // namespace fragtrace::preload
