// The settings of PyTorch's caching allocator, as written in PYTORCH_CUDA_ALLOC_CONF.
//
// parse_pytorch_config() accepts and rejects the same texts as PyTorch 2.15, with PyTorch's own
// reason. It has the same leniencies ("50;x" means 50, -1 wraps to a huge number). Pure functions
// and plain data.
#pragma once

#include "analyzer/pools/pytorch/pytorch_rules.h"
#include "analyzer/support/result.h"
#include "analyzer/support/units.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// How much address space an expandable segment reserves; kDefault is 9/8 of the card.
struct PytorchReserve {
    enum class Kind : std::uint8_t { kDefault, kFraction, kBytes };
    Kind kind = Kind::kDefault;
    double fraction = 0;
    std::uint64_t size_bytes = 0;

    bool operator==(const PytorchReserve&) const = default;
};

struct PytorchConfig {
    static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
    static constexpr std::uint64_t kDefaultLargeSegmentBytes = 20 * kMiB;
    static constexpr std::size_t kRoundupSlots = 16;

    std::uint64_t max_split_size_bytes = kUnlimited;
    std::uint64_t max_non_split_rounding_bytes = kDefaultLargeSegmentBytes;
    std::uint64_t large_segment_size_bytes = kDefaultLargeSegmentBytes;
    double garbage_collection_threshold = 0;  // 0 = off
    // Slot i is for sizes from 2^(20+i) bytes. 0 = round to 512 bytes only.
    std::array<std::uint64_t, kRoundupSlots> roundup_divisions{};
    bool expandable_segments = false;
    double per_process_memory_fraction = 1.0;
    bool throw_on_cudamalloc_oom = false;
    PytorchReserve expandable_segments_reserve;

    bool operator==(const PytorchConfig&) const = default;
};

// Errors are kUsage. The text names the key, the value and PyTorch's reason.
Result<PytorchConfig> parse_pytorch_config(std::string_view text, const PytorchRules& rules = {});

// Whether a text has no other words than keys of settings and values that PyTorch defines, whatever
// the release. It may have mistakes.
bool is_pytorch_setting(std::string_view text);

// The settings after the program changed them at run time. As in PyTorch, some keys return to their
// defaults if `text` does not name them, and the others keep their values. Errors as above.
Result<PytorchConfig> change_pytorch_config(const PytorchConfig& before,
                                            std::string_view text,
                                            const PytorchRules& rules = {});

// Returns "key:value,key:value" in a fixed order, with only the settings that differ from the
// defaults and affect device memory. Parsing the text gives the same settings.
std::string to_string(const PytorchConfig& config);

}  // namespace fragtrace::analyzer
