// Time of events: CLOCK_MONOTONIC, at half the price of asking for it.
//
// Where the kernel itself derives that clock from the processor's counter (clock source "tsc"), the
// counter is read here and scaled, without the C library's call and its waiting for earlier
// instructions. The scale is measured anew by the drain at each of its wakes, so what can differ
// from the kernel's clock is what the kernel changed since: its slope, by a few parts in a million
// where time is kept by NTP. After kMostTrusted_ns without a measurement (no drain yet, a drain
// that hangs, a child after a fork, a machine that was suspended) the kernel is asked as everywhere
// else.
#pragma once

#include "system/sys.h"

#include <stdint.h>
#include <time.h>

namespace fragtrace::preload {

inline constexpr uint64_t kMostTrusted_ns = 300'000'000;
// Of a reading, while the slope of the kernel's clock changes by less than 2 parts in a million
// within kMostTrusted_ns. Whoever changes it by the most that the kernel allows (adjtime(), 500
// parts in a million) makes it 0.15 ms until the next measurement.
inline constexpr uint64_t kClockError_ns = 1000;

// The counter at one moment, and the slope from there. Written by the measuring thread only;
// `version` is odd while it does.
struct alignas(64) ClockScale {
    static constexpr uint32_t kBits = 32;

    uint32_t version;
    uint64_t ticks;
    uint64_t ns;
    uint64_t ns_per_tick;    // << kBits
    uint64_t trusted_ticks;  // 0: not known, or not to be used
};

extern constinit ClockScale g_clock_scale;

// Any thread, no locks, never waits. May lie kClockError_ns before a reading of another thread.
inline uint64_t monotonic_ns() {
#if defined(__x86_64__)
    const ClockScale& scale = g_clock_scale;
    const uint32_t version = load_acquire(&scale.version);
    const uint64_t begin_ticks = load_acquire(&scale.ticks);
    const uint64_t ns = load_acquire(&scale.ns);
    const uint64_t ns_per_tick = load_acquire(&scale.ns_per_tick);
    const uint64_t trusted_ticks = load_acquire(&scale.trusted_ticks);
    if (trusted_ticks != 0) [[likely]] {
        // Huge where the counter went back.
        const uint64_t ticks = __builtin_ia32_rdtsc() - begin_ticks;
        if (ticks < trusted_ticks && version % 2 == 0 && load_relaxed(&scale.version) == version)
            [[likely]] {
            return ns + (ticks * ns_per_tick >> ClockScale::kBits);
        }
    }
#endif
    return clock_ns(CLOCK_MONOTONIC);
}

// Finds out whether the counter may be used. Before a drain starts.
void start_clock();

// Measures the scale; by one thread at a time. Does nothing where the counter is not used.
void measure_clock();

// Whether readings come from the counter just now; for tests.
bool clock_is_counter();

}  // namespace fragtrace::preload
