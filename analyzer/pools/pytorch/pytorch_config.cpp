#include "analyzer/pools/pytorch/pytorch_config.h"

#include "analyzer/pools/config_words.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <vector>

namespace fragtrace::analyzer {
namespace {

// Slot of a roundup interval of `interval_mb`, a power of two.
std::size_t roundup_slot(std::uint64_t interval_mb) {
    const auto slot = static_cast<std::size_t>(std::bit_width(interval_mb) - 1);
    return std::min(slot, PytorchConfig::kRoundupSlots - 1);
}

constexpr std::uint64_t kMostMb = ~std::uint64_t{0} / kMiB;
constexpr std::uint64_t kMostSegmentMb = std::uint64_t{1} << 20;  // 1 TiB

class Parser {
  public:
    // `config` has the values of keys that the text does not name.
    Parser(std::string_view text, const PytorchRules& rules, const PytorchConfig& config)
        : rules_(rules), tokens_(split_config_words(text)), config_(config) {}

    Result<PytorchConfig> parse() {
        // Read this key first, wherever it stands: the minimum values of other keys depend on it.
        for (at_ = 0; at_ < tokens_.size(); ++at_) {
            if (tokens_[at_] == "large_segment_size_mb" && !large_segment_size()) {
                return error();
            }
        }
        if (rules_.has_large_segment_size) {  // older releases keep the previous value
            config_.max_non_split_rounding_bytes = config_.large_segment_size_bytes;
        }
        for (at_ = 0; at_ < tokens_.size(); ++at_) {
            key_ = tokens_[at_];
            if (!setting()) {
                return error();
            }
            // The token after a value is a comma. Any other token is skipped, as in PyTorch.
            ++at_;
        }
        return config_;
    }

    // Whether PyTorch knows the key.
    static bool knows(std::string_view key) { return find_setting(key) != nullptr; }

  private:
    struct Setting {
        std::string_view key;
        bool (*read)(Parser& parser);
    };

    static const Setting* find_setting(std::string_view key);

    Error error() const {
        const std::string subject =
            value_.empty() ? fmt::format("'{}'", key_) : fmt::format("'{}:{}'", key_, value_);
        return {ErrorCode::kUsage,
                fmt::format("PyTorch allocator setting {}: {}", subject, reason_)};
    }

    bool fail(std::string reason) {
        reason_ = std::move(reason);
        return false;
    }

    // Moves to the value after "key :".
    bool next_value() {
        if (at_ + 2 >= tokens_.size()) {
            at_ = tokens_.size();
            value_.clear();
            return fail("the value is missing");
        }
        at_ += 2;
        value_ = tokens_[at_];
        return true;
    }

    bool unsigned_value(std::uint64_t& value) {
        return next_value() && (read_unsigned(value_, value) || fail("it is not a whole number"));
    }

    bool double_value(double& value) {
        return next_value() && (read_double(value_, value) || fail("it is not a number"));
    }

    bool bool_value(bool& value) {
        if (!next_value()) {
            return false;
        }
        if (value_ != "True" && value_ != "False") {
            return fail(fmt::format("Expected 'True' or 'False' but got '{}'", value_));
        }
        value = value_ == "True";
        return true;
    }

    bool large_segment_size() {
        key_ = tokens_[at_];
        std::uint64_t value = 0;
        if (!unsigned_value(value)) {
            return false;
        }
        if (value <= 10) {
            return fail("large_segment_size_mb must be > 10 MB");
        }
        if (value > kMostSegmentMb) {
            return fail(
                fmt::format("no device has such segments; give at most {}", kMostSegmentMb));
        }
        config_.large_segment_size_bytes = value * kMiB;
        return true;
    }

    bool at_least_large_segment(std::uint64_t& size_bytes) {
        std::uint64_t value = 0;
        if (!unsigned_value(value)) {
            return false;
        }
        const std::uint64_t least = config_.large_segment_size_bytes / kMiB;
        if (value < least) {
            return fail(fmt::format("{} too small, must be >= {}", key_, least));
        }
        // PyTorch's multiplication overflows here. Values above all memory mean "never" in both.
        size_bytes = value > kMostMb ? kMostMb * kMiB : value * kMiB;
        return true;
    }

    bool setting() {
        const Setting* found = find_setting(key_);
        if (found != nullptr) {
            return found->read(*this);
        }
        value_.clear();
        return fail(fmt::format("Unrecognized key '{}' in CUDA allocator config.", key_));
    }

    bool garbage_collection_threshold() {
        double value = 0;
        if (!double_value(value)) {
            return false;
        }
        if (!(value > 0 && value < 1)) {
            return fail("garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
        }
        config_.garbage_collection_threshold = value;
        return true;
    }

    bool memory_fraction() {
        double value = 0;
        if (!double_value(value)) {
            return false;
        }
        if (!(value >= 0 && value <= 1)) {
            return fail("per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
        }
        config_.per_process_memory_fraction = value;
        return true;
    }

    // PyTorch prints a warning for an unusable value and keeps the default.
    bool reserve() {
        if (!next_value()) {
            return false;
        }
        double value = 0;
        if (!read_double(value_, value) || !(value > 0) || !std::isfinite(value)) {
            return true;
        }
        const char unit = value_.back();
        if (unit == 'G' || unit == 'g') {
            const double size_bytes = value * static_cast<double>(kGiB);
            if (size_bytes < 0x1p60) {
                config_.expandable_segments_reserve = {
                    PytorchReserve::Kind::kBytes, 0, static_cast<std::uint64_t>(size_bytes)};
            }
        } else {
            config_.expandable_segments_reserve = {PytorchReserve::Kind::kFraction, value, 0};
        }
        return true;
    }

    bool backend() {
        if (!next_value()) {
            return false;
        }
        if (value_ == "cudaMallocAsync") {
            return fail("this backend is the driver's own pool and is not simulated");
        }
        return value_ == "native" ||
               fail("Unknown allocator backend, options are native and cudaMallocAsync");
    }

    bool skip_list() {
        if (value_ != "[") {
            return true;
        }
        while (at_ < tokens_.size() && tokens_[at_] != "]") {
            ++at_;
        }
        return at_ < tokens_.size() || fail("the list is not closed by ']'");
    }

    bool roundup_divisions() {
        if (!next_value()) {
            return false;
        }
        auto& divisions = config_.roundup_divisions;
        if (value_ != "[") {
            std::uint64_t value = 0;
            if (!read_unsigned(value_, value)) {
                return fail("it is not a whole number");
            }
            if (!std::has_single_bit(value)) {
                return fail("For roundups, the divisions has to be power of 2");
            }
            divisions.fill(value);
            return true;
        }
        divisions.fill(0);
        ++at_;
        bool first = true;
        std::size_t last_slot = 0;
        while (at_ < tokens_.size() && tokens_[at_] != "]") {
            if (at_ + 2 >= tokens_.size()) {
                break;
            }
            const std::string& interval = tokens_[at_];
            at_ += 2;
            value_ = interval + ":" + tokens_[at_];
            if (!roundup_entry(interval, tokens_[at_], first, last_slot)) {
                return false;
            }
            ++at_;
            if (at_ < tokens_.size() && tokens_[at_] == ",") {
                ++at_;
            }
        }
        return (at_ < tokens_.size() && tokens_[at_] == "]") ||
               fail("the list is not closed by ']'");
    }

    bool roundup_entry(const std::string& interval,
                       const std::string& division,
                       bool& first,
                       std::size_t& last_slot) {
        auto& divisions = config_.roundup_divisions;
        std::uint64_t value = 0;
        std::uint64_t interval_mb = 0;
        const bool open = interval == ">";
        if (!open && !read_unsigned(interval, interval_mb)) {
            return fail("the interval is not a whole number");
        }
        if (!open && !std::has_single_bit(interval_mb)) {
            return fail("For roundups, the intervals have to be power of 2");
        }
        if (!read_unsigned(division, value)) {
            return fail("the divisions are not a whole number");
        }
        if (value != 0 && !std::has_single_bit(value)) {
            return fail("For roundups, the divisions has to be power of 2 or 0 to disable roundup");
        }
        if (open) {
            const std::size_t from =
                rules_.open_interval_overwrites_last ? last_slot : last_slot + 1;
            std::fill(divisions.begin() +
                          static_cast<std::ptrdiff_t>(std::min(from, PytorchConfig::kRoundupSlots)),
                      divisions.end(),
                      value);
            return true;
        }
        const std::size_t slot = roundup_slot(interval_mb);
        if (first) {
            std::fill_n(divisions.begin(), slot, value);
            first = false;
        }
        divisions[slot] = value;
        last_slot = slot;
        return true;
    }

    bool ignored_number() {
        std::uint64_t number = 0;
        return unsigned_value(number);
    }

    static bool ignored_flag(Parser& parser) {
        bool flag = false;
        return parser.bool_value(flag);
    }

    bool register_threads() {
        std::uint64_t number = 0;
        if (!unsigned_value(number)) {
            return false;
        }
        if (!std::has_single_bit(number)) {
            return fail(
                fmt::format("Number of register threads has to be power of 2, got {}", number));
        }
        return number <= 128 ||
               fail(fmt::format(
                   "Number of register threads should be less than or equal to 128, got {}",
                   number));
    }

    bool pinned_segment_size() {
        std::uint64_t number = 0;
        return unsigned_value(number) &&
               (number > 0 || fail("Pinned reserve segment size has to be greater than 0"));
    }

    const PytorchRules& rules_;
    std::vector<std::string> tokens_;
    std::size_t at_ = 0;
    std::string key_;
    std::string value_;
    std::string reason_;
    PytorchConfig config_;
};

const Parser::Setting* Parser::find_setting(std::string_view key) {
    static constexpr Setting kSettings[] = {
        {"max_split_size_mb",
         [](Parser& parser) {
             return parser.at_least_large_segment(parser.config_.max_split_size_bytes);
         }},
        {"max_non_split_rounding_mb",
         [](Parser& parser) {
             return parser.at_least_large_segment(parser.config_.max_non_split_rounding_bytes);
         }},
        {"large_segment_size_mb", [](Parser& parser) { return parser.large_segment_size(); }},
        {"garbage_collection_threshold",
         [](Parser& parser) { return parser.garbage_collection_threshold(); }},
        {"roundup_power2_divisions", [](Parser& parser) { return parser.roundup_divisions(); }},
        {"expandable_segments",
         [](Parser& parser) { return parser.bool_value(parser.config_.expandable_segments); }},
        {"per_process_memory_fraction", [](Parser& parser) { return parser.memory_fraction(); }},
        {"throw_on_cudamalloc_oom",
         [](Parser& parser) { return parser.bool_value(parser.config_.throw_on_cudamalloc_oom); }},
        {"expandable_segments_reserve", [](Parser& parser) { return parser.reserve(); }},
        {"expandable_segments_reserve_by_class",
         [](Parser& parser) { return parser.next_value() && parser.skip_list(); }},
        {"backend", [](Parser& parser) { return parser.backend(); }},
        // Settings for host memory and threads. They are checked, and do not affect device memory.
        {"release_lock_on_cudamalloc", ignored_flag},
        {"release_lock_on_hipmalloc", ignored_flag},
        {"graph_capture_record_stream_reuse", ignored_flag},
        {"pinned_use_cuda_host_register", ignored_flag},
        {"pinned_use_hip_host_register", ignored_flag},
        {"pinned_use_background_threads", ignored_flag},
        {"pinned_free_catch_all", ignored_flag},
        {"pinned_num_register_threads", [](Parser& parser) { return parser.register_threads(); }},
        {"pinned_reserve_segment_size_mb",
         [](Parser& parser) { return parser.pinned_segment_size(); }},
        {"pinned_max_round_threshold_mb", [](Parser& parser) { return parser.ignored_number(); }},
        {"pinned_max_cached_size_mb", [](Parser& parser) { return parser.ignored_number(); }},
    };
    const auto* const found = std::find_if(std::begin(kSettings),
                                           std::end(kSettings),
                                           [key](const Setting& one) { return one.key == key; });
    return found == std::end(kSettings) ? nullptr : found;
}

}  // namespace

Result<PytorchConfig> parse_pytorch_config(std::string_view text, const PytorchRules& rules) {
    return Parser(text, rules, {}).parse();
}

bool is_pytorch_setting(std::string_view text) {
    constexpr std::string_view kValues[] = {"True", "False", "native", "cudaMallocAsync"};
    bool has_key = false;
    for (const std::string& word : split_config_words(text)) {
        const bool key = Parser::knows(word);
        has_key = has_key || key;
        const std::size_t end = word.find_first_not_of(":,[]>.0123456789");
        const bool figure =
            end == std::string::npos ||
            (end != 0 && end + 1 == word.size() && (word.back() == 'G' || word.back() == 'g'));
        if (!key && !figure &&
            std::find(std::begin(kValues), std::end(kValues), word) == std::end(kValues)) {
            return false;
        }
    }
    return has_key;
}

Result<PytorchConfig> change_pytorch_config(const PytorchConfig& before,
                                            std::string_view text,
                                            const PytorchRules& rules) {
    PytorchConfig kept = before;
    const PytorchConfig defaults;
    kept.max_split_size_bytes = defaults.max_split_size_bytes;
    kept.roundup_divisions = defaults.roundup_divisions;
    kept.garbage_collection_threshold = defaults.garbage_collection_threshold;
    return Parser(text, rules, kept).parse();
}

}  // namespace fragtrace::analyzer
