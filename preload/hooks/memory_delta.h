// What a call took from the device, where no call gives its size: contexts and code.
//
// It is the change of the device's free memory, so other processes and threads show in it. Asked of
// the driver where a context of that device is current, which costs no context; else of NVML, if
// the caller allows the time that this takes.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

class MemoryDelta {
  public:
    // `device`: kDeviceUnknown means the current one.
    MemoryDelta(uint16_t device, const void* caller) : device_(device), caller_(caller) {}

    void before(bool allow_nvml);

    // Bytes that the device has less now; 0 if it has more; kUnknown64 if it cannot be told.
    [[nodiscard]] uint64_t after() const;

    // How, as words for a fact.
    [[nodiscard]] const char* source() const;

  private:
    enum class Source : uint8_t { kNone, kDriver, kNvml };

    uint16_t device_;
    Source source_ = Source::kNone;
    uint64_t free_bytes_ = 0;
    const void* caller_;
};

}  // namespace fragtrace::preload
