// Measures the device memory of a call for which no API gives a size: contexts and code.
//
// If a context of that device is current, it is the change of the device's free memory by the
// driver, which creates no context. Otherwise NVML is asked, if the caller accepts the time: for
// the memory of this process, if NVML lists it, else for the change of the device's free memory.
// Such a change includes what other processes and threads did in the meantime.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

class MemoryDelta {
  public:
    // `device`: kDeviceUnknown means the current device.
    MemoryDelta(uint16_t device, const void* caller) : device_(device), caller_(caller) {}

    void before(bool allow_nvml);

    // Returns the bytes that the call took; 0 if free memory increased; kUnknown64 if unknown.
    [[nodiscard]] uint64_t after();

    // Returns the source of the measurement, as the text of a fact. Call it after after().
    [[nodiscard]] const char* source() const;

  private:
    enum class Source : uint8_t { kNone, kDriver, kNvml, kNvmlProcess };

    uint16_t device_;
    Source source_ = Source::kNone;
    uint64_t free_bytes_ = 0;
    bool listed_before_ = true;  // by NVML, with memory on this device
    const void* caller_;
};

}  // namespace fragtrace::preload
