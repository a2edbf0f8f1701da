// What differs between releases of PyTorch's caching allocator and changes which block a request
// gets. The defaults are those of 2.13 and later.
#pragma once

#include <cstdint>
#include <string_view>

namespace fragtrace::analyzer {

struct PytorchRules {
    // Among free blocks of one size: the segment obtained first, or the lowest address. Addresses
    // are the driver's business, so a replay under kAddress is one of several possible.
    enum class TieBreak : std::uint8_t { kRegistration, kAddress };
    TieBreak tie_break = TieBreak::kRegistration;
    // Settings that came later than the oldest of these releases.
    bool has_expandable_segments = true;  // 2.1
    bool has_large_segment_size = true;   // 2.10; 2.9 takes the key and ignores it
    // 2.10: '>' in roundup_power2_divisions starts after the last named slot, not at it.
    bool open_interval_overwrites_last = false;
    // 2.4: a single division means plain rounding, not rounding to a power of two.
    bool one_division_rounds_up = false;
    // 2.9: a memory fraction of 1 is no limit at all.
    bool fraction_one_limits = false;
    // 2.10: pools that may be used on an OOM are asked once the driver has refused, before cached
    // memory is given back; until then after all else (seen on 2.9.1 and 2.13.0).
    bool fallback_last = false;

    // "2.6.0", "2.6"; what is no release gets the defaults.
    static PytorchRules for_release(std::string_view release);
    static bool is_release(std::string_view text);

    static PytorchRules for_version(int major, int minor) {
        const int version = major * 100 + minor;
        PytorchRules rules;
        rules.tie_break = version >= 213 ? TieBreak::kRegistration : TieBreak::kAddress;
        rules.has_expandable_segments = version >= 201;
        rules.has_large_segment_size = version >= 210;
        rules.open_interval_overwrites_last = version < 210;
        rules.one_division_rounds_up = version < 204;
        rules.fraction_one_limits = version < 209;
        rules.fallback_last = version < 210;
        return rules;
    }
};

}  // namespace fragtrace::analyzer
