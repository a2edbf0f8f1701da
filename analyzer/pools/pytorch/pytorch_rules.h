// Differences between releases of PyTorch's caching allocator that change which block a request
// gets. The defaults are the rules of 2.15 and later.
//
// Each comment starts with the release that changed the rule. "Seen on" lists releases in which we
// observed it.
#pragma once

#include <cstdint>
#include <string_view>

namespace fragtrace::analyzer {

struct PytorchRules {
    int minor =
        15;  // the rules are those of 2.N; 99 = of a later major release, 0 = an earlier one
    // Which of several free blocks of the same size is used: the one in the oldest segment, or the
    // one with the lowest address. The driver chooses addresses, so a replay with kAddress is one
    // of several possible replays.
    enum class TieBreak : std::uint8_t { kRegistration, kAddress };
    TieBreak tie_break = TieBreak::kRegistration;
    // Settings that the oldest supported releases do not have, with the release that added them.
    bool has_expandable_segments = true;  // 2.1
    bool has_large_segment_size = true;   // 2.10; 2.9 accepts the key and ignores it
    bool has_mem_pool = true;             // 2.5
    // 2.10: '>' in roundup_power2_divisions starts after the last named slot. Before, it started at
    // that slot.
    bool open_interval_overwrites_last = false;
    // 2.4: a single division means rounding to 512 bytes. Before, it disabled all rounding (seen on
    // 2.0.1 and 2.1.2).
    bool one_division_rounds_nothing = false;
    // 2.10: a memory fraction of 1 means no limit (2.9.1 still has a limit).
    bool fraction_one_limits = false;
    // 2.13: the limit from a memory fraction is rounded to the nearest byte. Before, it was rounded
    // down (seen on 2.12.0 and 2.13.0).
    bool fraction_rounds_down = false;
    // 2.10: pools with use_on_oom are tried right after the driver refused, before cached memory is
    // released. Before, they were tried last (seen on 2.9.1 and 2.13.0).
    bool fallback_last = false;

    // 2.13: routing requests to a private pool does not affect other requests. Before, PyTorch
    // treated it as a stream capture: no event is checked and no memory released (seen on 2.0 to
    // 2.9).
    bool routing_is_capture = false;
    // 2.4: a freed block does not wait for a stream that was recorded on it during a capture (seen
    // on 2.4.1, not on 2.1.2). The pool's caller omits such streams.
    bool waits_for_captured_streams = false;
    // 2.6: private pools use expandable segments as well. 2.4.1 and 2.1.2 allocate whole segments
    // for them, but split them down to 512 bytes.
    bool private_pools_expand = true;
    // 2.15: if a request is larger than the whole reserved address range, the range is released
    // immediately. Before, it stayed reserved (seen on 2.13.0).
    bool keeps_short_reservations = false;

    // Accepts "2.6.0" and "2.6". Any other text gets the defaults.
    static PytorchRules for_release(std::string_view release);
    static bool is_release(std::string_view text);

    static PytorchRules for_version(int major, int minor) {
        const int version = major * 100 + minor;
        PytorchRules rules;
        rules.tie_break = version >= 213 ? TieBreak::kRegistration : TieBreak::kAddress;
        rules.has_expandable_segments = version >= 201;
        rules.has_large_segment_size = version >= 210;
        rules.has_mem_pool = version >= 205;
        rules.minor = major < 2 ? 0 : major > 2 ? 99 : minor;
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
