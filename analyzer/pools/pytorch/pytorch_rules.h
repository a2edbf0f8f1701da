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
    // 2.4: a single division means plain rounding; until then no rounding at all, not even to 512
    // bytes (seen on 2.0.1 and 2.1.2).
    bool one_division_rounds_nothing = false;
    // 2.10: a memory fraction of 1 is no limit at all (2.9.1 still has one).
    bool fraction_one_limits = false;
    // 2.13: the part of the card that a memory fraction allows is rounded to the nearest byte;
    // until then the rest of a byte is dropped (seen on 2.12.0 and 2.13.0).
    bool fraction_rounds_down = false;
    // 2.10: pools that may be used on an OOM are asked once the driver has refused, before cached
    // memory is given back; until then after all else (seen on 2.9.1 and 2.13.0).
    bool fallback_last = false;

    // 2.13: while requests are routed to a private pool, others go on as ever; until then that was
    // taken for a stream capture: no event is looked at and nothing released (seen on 2.0 to 2.9).
    bool routing_is_capture = false;
    // 2.4: a stream that a block was recorded on during a capture is not waited for after it (seen
    // on 2.4.1, not on 2.1.2). Whoever drives the pool leaves such streams out.
    bool waits_for_captured_streams = false;
    // 2.6: private pools have expandable segments as well (2.4.1 and 2.1.2 obtain whole segments,
    // but split them to the last 512 bytes).
    bool private_pools_expand = true;
    // 2.15: address space for a request that is larger than all of it is given up at once; until
    // then it stays (seen on 2.13.0).
    bool keeps_short_reservations = false;

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
        rules.one_division_rounds_nothing = version < 204;
        rules.fraction_one_limits = version < 210;
        rules.fraction_rounds_down = version < 213;
        rules.fallback_last = version < 210;
        rules.routing_is_capture = version < 213;
        rules.waits_for_captured_streams = version < 204;
        rules.private_pools_expand = version >= 206;
        rules.keeps_short_reservations = version < 215;
        return rules;
    }
};

}  // namespace fragtrace::analyzer
