#include "system/clock.h"

#include "system/sys.h"

#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#    include <cpuid.h>
#    include <sys/prctl.h>
#    include <x86intrin.h>
#endif

namespace fragtrace::preload {

constinit ClockScale g_clock_scale{};

#if defined(__x86_64__)
namespace {

// Minimum time between two measurements of the slope. Readings are exact to half of
// kMostUncertain_ns, so the slope is exact to about 1 part in a million.
constexpr uint64_t kShortestBase_ns = 90 * kMillisecond_ns;
// A reading of both clocks that takes less than this is exact enough. Otherwise the thread was
// interrupted.
constexpr uint64_t kMostUncertain_ns = 100;
// A larger change of the slope does not come from the kernel's clock control: the machine was
// suspended, or moved to another host.
constexpr uint64_t kMostSlopeChange_per_million = 1000;

// Data of the measuring thread, from the previous measurement.
bool g_counter_usable;
uint64_t g_last_ticks;
uint64_t g_last_ns;
uint64_t g_last_slope;  // as ns_per_tick

bool counter_does_not_stop() {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
}

bool kernel_uses_counter() {
    char name[16];
    const long size = read_file(
        "/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof name);
    return size == 4 && memcmp(name, "tsc\n", 4) == 0;
}

// A process can be forbidden to read the counter (PR_SET_TSC).
bool process_may_read_counter() {
    int allowed = 0;
    return prctl(PR_GET_TSC, &allowed, 0, 0, 0) == 0 && allowed == PR_TSC_ENABLE;
}

// Reads both clocks at one moment. Returns false if the thread was interrupted in every attempt.
bool read_both(uint64_t* ticks, uint64_t* ns) {
    for (int i = 0; i < 8; ++i) {
        const uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
        *ticks = __rdtsc();
        const uint64_t after_ns = clock_ns(CLOCK_MONOTONIC);
        *ns = before_ns + (after_ns - before_ns) / 2;
        if (after_ns - before_ns < kMostUncertain_ns) {
            return true;
        }
    }
    return false;
}

void publish(const ClockScale& scale) {
    // A fork may have left the version odd.
    const uint32_t version = g_clock_scale.version | 1;
    store_release(&g_clock_scale.version, version);
    // Each of these stores becomes visible after the version's.
    store_release(&g_clock_scale.ticks, scale.ticks);
    store_release(&g_clock_scale.ns, scale.ns);
    store_release(&g_clock_scale.ns_per_tick, scale.ns_per_tick);
    store_release(&g_clock_scale.trusted_ticks, scale.trusted_ticks);
    store_release(&g_clock_scale.version, version + 1);
}

bool is_near(uint64_t slope, uint64_t other) {
    const uint64_t difference = slope > other ? slope - other : other - slope;
    return difference < other / 1'000'000 * kMostSlopeChange_per_million;
}

}  // namespace

void start_clock() {
    g_counter_usable =
        counter_does_not_stop() && kernel_uses_counter() && process_may_read_counter();
    g_last_ticks = g_last_slope = 0;
    publish(ClockScale{});
    measure_clock();
}

void measure_clock() {
    uint64_t ticks = 0;
    uint64_t ns = 0;
    if (!g_counter_usable || !read_both(&ticks, &ns) ||
        (g_last_ticks != 0 && ns - g_last_ns < kShortestBase_ns)) {
        return;
    }
    uint64_t slope = 0;
    const uint64_t passed_ticks = ticks - g_last_ticks;
    const uint64_t passed_ns = ns - g_last_ns;
    // Accepts only quotients that fit: at most 4 s, and 1 to 16 ticks per nanosecond.
    if (g_last_ticks != 0 && passed_ns < 4 * kSecond_ns && passed_ticks >= passed_ns &&
        passed_ticks / 16 <= passed_ns) {
        slope = (passed_ns << ClockScale::kBits) / passed_ticks;
    }
    // The scale is used only after two measurements agree.
    const bool known = slope != 0 && g_last_slope != 0 && is_near(slope, g_last_slope);
    publish(known ? ClockScale{0, ticks, ns, slope, (kMostTrusted_ns << ClockScale::kBits) / slope}
                  : ClockScale{});
    g_last_ticks = ticks;
    g_last_ns = ns;
    g_last_slope = slope;
}

bool clock_is_counter() {
    return load_acquire(&g_clock_scale.trusted_ticks) != 0;
}

#else

void start_clock() {}

void measure_clock() {}

bool clock_is_counter() {
    return false;
}

#endif

}  // namespace fragtrace::preload
