// Time of events: CLOCK_MONOTONIC, at half the cost of clock_gettime().
//
// If the kernel derives that clock from the processor's counter (clock source "tsc"), this code
// reads and scales the counter itself. That avoids the C library's call and its wait for earlier
// instructions. The drain measures the scale again at each of its wakes. So the time differs from
// the kernel's clock only by what the kernel changed since then: the slope, by a few parts in a
// million if NTP controls the time. After kMostTrusted_ns without a measurement, the kernel is
// asked. That happens before the drain starts, if the drain hangs, in a child after a fork, and
// after the machine was suspended.
#pragma once

#include "system/sys.h"

#include <stdint.h>
#include <time.h>

namespace fragtrace::preload {

inline constexpr uint64_t kMostTrusted_ns = 300'000'000;
// Error of a reading, as long as the slope of the kernel's clock changes by less than 2 parts in a
// million within kMostTrusted_ns. A change by the maximum that the kernel allows (adjtime(), 500
// parts in a million) increases it to 0.15 ms until the next measurement.
inline constexpr uint64_t kClockError_ns = 1000;

// The counter at one moment, and the slope from there. Only the measuring thread writes; `version`
// is odd during a write.
struct alignas(64) ClockScale {
    static constexpr uint32_t kBits = 32;

    uint32_t version;
    uint64_t ticks;
    uint64_t ns;
    uint64_t ns_per_tick;    // << kBits
    uint64_t trusted_ticks;  // 0: unknown, or must not be used
};

extern constinit ClockScale g_clock_scale;

// Any thread, no locks, never waits. A reading may be up to kClockError_ns earlier than one of
// another thread.
inline uint64_t monotonic_ns() {
#if defined(__x86_64__)
    const ClockScale& scale = g_clock_scale;
    const uint32_t version = load_acquire(&scale.version);
    const uint64_t begin_ticks = load_acquire(&scale.ticks);
    const uint64_t ns = load_acquire(&scale.ns);
    const uint64_t ns_per_tick = load_acquire(&scale.ns_per_tick);
    const uint64_t trusted_ticks = load_acquire(&scale.trusted_ticks);
    if (trusted_ticks != 0) [[likely]] {
        // A huge number if the counter went back.
        const uint64_t ticks = __builtin_ia32_rdtsc() - begin_ticks;
        if (ticks < trusted_ticks && version % 2 == 0 && load_relaxed(&scale.version) == version)
            [[likely]] {
            return ns + (ticks * ns_per_tick >> ClockScale::kBits);
        }
    }
#endif
    return clock_ns(CLOCK_MONOTONIC);
}

// Checks whether the counter can be used. Must be called before the drain starts.
void start_clock();

// Measures the scale; one thread at a time. Does nothing if the counter is not used.
void measure_clock();

// Returns whether readings currently come from the counter; for tests.
bool clock_is_counter();

}  // namespace fragtrace::preload
