#include "analyzer/export/chrome_trace.h"

#include "analyzer/snapshot/byte_stream.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/terminal.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Limits. Real profiles stay far below them, except for the number of slices.
constexpr std::size_t kMostSlices = std::size_t{16} << 20;
constexpr std::size_t kMostTracks = 10000;
constexpr std::size_t kMostTextBytes = std::size_t{64} << 20;
constexpr std::size_t kMostTokenBytes = std::size_t{1} << 20;
constexpr std::size_t kMostNameBytes = 1000;
constexpr unsigned kMostDepth = 64;
// Earlier times (before September 2001) are not taken for unix times.
constexpr std::uint64_t kUnixTimesFrom_ns = 1'000'000'000'000'000'000;
// Perfetto's times are signed.
constexpr std::uint64_t kMostTime_ns = std::uint64_t{1} << 62;

// Gives the parser one byte after the other, and ends early if a string or number is too long.
class JsonBytes {
  public:
    explicit JsonBytes(const InputFile& file) : stream_(file) {}

    [[nodiscard]] bool at_end() { return too_long() || !stream_.require(1); }

    [[nodiscard]] char now() const { return static_cast<char>(*stream_.data()); }

    void advance() {
        const char byte = now();
        ++token_bytes_;
        if (escaped_) {
            escaped_ = false;
        } else if (byte == '"') {
            in_string_ = !in_string_;
            token_bytes_ = 0;
        } else if (in_string_) {
            escaped_ = byte == '\\';
        } else if (byte == ',' || byte == ':' || byte == '[' || byte == '{' || byte == '}' ||
                   byte == ']' || byte <= ' ') {
            token_bytes_ = 0;
        }
        stream_.skip(1);
    }

    [[nodiscard]] bool too_long() const { return token_bytes_ > kMostTokenBytes; }

    [[nodiscard]] std::uint64_t offset() const { return stream_.offset(); }

    [[nodiscard]] const std::string& failure() const { return stream_.failure(); }

  private:
    ByteStream stream_;
    std::size_t token_bytes_ = 0;
    bool in_string_ = false;
    bool escaped_ = false;
};

class JsonIterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;

    JsonIterator() = default;

    explicit JsonIterator(JsonBytes* bytes) : bytes_(bytes) {}

    char operator*() const { return bytes_->now(); }

    JsonIterator& operator++() {
        bytes_->advance();
        return *this;
    }

    JsonIterator operator++(int) {
        const JsonIterator before = *this;
        ++*this;
        return before;
    }

    // The parser compares only with the end.
    bool operator==(const JsonIterator& /*end*/) const {
        return bytes_ == nullptr || bytes_->at_end();
    }

  private:
    JsonBytes* bytes_ = nullptr;
};

// A decimal number times 10^`places`; further digits are dropped. The digits are read one by one
// because a double cannot hold unix times in nanoseconds.
std::optional<std::uint64_t> scaled(std::string_view text, std::size_t places) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    std::string digits(text.substr(0, dot));
    std::string fraction(text.substr(std::min(dot + 1, text.size())));
    if (digits.empty() ||
        (digits + fraction).find_first_not_of("0123456789") != std::string::npos) {
        return std::nullopt;
    }
    fraction.resize(places, '0');
    std::uint64_t value = 0;
    for (const char digit : digits + fraction) {
        value = value * 10 + static_cast<std::uint64_t>(digit - '0');
        if (value > kMostTime_ns) {
            return std::nullopt;
        }
    }
    return value;
}

// Reads microseconds.
std::optional<std::uint64_t> nanoseconds(std::string_view text) {
    return scaled(text, 3);
}

std::string_view kind_in_words(std::string_view phase) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kKinds = {{
        {"stf", "flows"},
        {"iIRnN", "instants"},
        {"C", "counters"},
        {"BEbe", "slices of two events"},
    }};
    for (const auto& [letters, words] : kKinds) {
        if (phase.size() == 1 && letters.find(phase) != std::string_view::npos) {
            return words;
        }
    }
    return "other events";
}

// Called by the parser for each value. A member of an event is kept as text.
class Handler : public nlohmann::json_sax<nlohmann::json> {
  public:
    bool null() override { return value({}); }

    bool boolean(bool /*value*/) override { return value({}); }

    bool number_integer(number_integer_t number) override { return value(std::to_string(number)); }

    bool number_unsigned(number_unsigned_t number) override {
        return value(std::to_string(number));
    }

    bool number_float(number_float_t /*number*/, const string_t& text) override {
        return value(text);
    }

    bool string(string_t& text) override { return value(std::move(text)); }

    bool binary(binary_t& /*value*/) override { return value({}); }

    bool start_object(std::size_t /*size*/) override {
        if (events_depth_ != 0 && depth_ == events_depth_) {
            event_.fill({});
        }
        return open();
    }

    bool end_object() override {
        --depth_;
        if (events_depth_ != 0 && depth_ == events_depth_) {
            take_event();
        }
        return true;
    }

    bool start_array(std::size_t /*size*/) override {
        // Either the whole file is the array of events, or its member "traceEvents" is.
        if (depth_ == 0 || (depth_ == 1 && key_ == "traceEvents" && !found_events_)) {
            events_depth_ = depth_ + 1;
            found_events_ = true;
        }
        return open();
    }

    bool end_array() override {
        if (depth_ == events_depth_) {
            events_depth_ = 0;
        }
        --depth_;
        return true;
    }

    bool key(string_t& text) override {
        if (depth_ == 1) {
            key_ = std::move(text);
        } else if (in_event(0)) {
            member_ = member_of(text);
            in_arguments_ = text == "args";
        } else if (in_event(1) && in_arguments_) {
            member_ = text == "name" ? kArgumentName : text == "labels" ? kLabels : kOther;
        }
        return true;
    }

    bool parse_error(std::size_t /*position*/,
                     const std::string& /*token*/,
                     const nlohmann::json::exception& /*error*/) override {
        return false;
    }

    [[nodiscard]] bool too_deep() const { return depth_ > kMostDepth; }

    // An error in words; empty = none.
    std::string finish(ChromeTrace* result) {
        if (!found_events_) {
            return "has no traceEvents";
        }
        if (trace_.slices == 0) {
            return R"(has no slices (events with "ph": "X"))";
        }
        trace_.first_ns = base_ns_ + earliest_ns_;
        if (trace_.first_ns < kUnixTimesFrom_ns) {
            return "has times that are not unix times, and no baseTimeNanoseconds, so it cannot be "
                   "placed beside a recording";
        }
        for (ChromeTrack& track : trace_.tracks) {
            for (ChromeSlice& slice : track.slices) {
                slice.begin_ns += base_ns_;
                slice.end_ns += base_ns_;
                trace_.last_ns = std::max(trace_.last_ns, slice.end_ns);
            }
            std::stable_sort(track.slices.begin(),
                             track.slices.end(),
                             [](const ChromeSlice& a, const ChromeSlice& b) {
                                 return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns
                                                                 : a.end_ns > b.end_ns;
                             });
        }
        *result = std::move(trace_);
        return {};
    }

  private:
    enum Member {
        kPhase,
        kName,
        kCategory,
        kPid,
        kTid,
        kTime,
        kDuration,
        kArgumentName,
        kLabels,
        kOther
    };

    static Member member_of(const std::string& key) {
        constexpr std::array<std::string_view, kArgumentName> kKeys = {
            "ph", "name", "cat", "pid", "tid", "ts", "dur"};
        for (std::size_t i = 0; i < kKeys.size(); ++i) {
            if (kKeys[i] == key) {
                return static_cast<Member>(i);
            }
        }
        return kOther;
    }

    // Whether the parser is inside an event, `deeper` levels below its own members.
    [[nodiscard]] bool in_event(unsigned deeper) const {
        return events_depth_ != 0 && depth_ == events_depth_ + 1 + deeper;
    }

    bool open() {
        ++depth_;
        return !too_deep();
    }

    bool value(std::string text) {
        if (depth_ == 1 && key_ == "baseTimeNanoseconds" && events_depth_ == 0) {
            base_ns_ = scaled(text, 0).value_or(0);
        } else if (member_ != kOther &&
                   (in_event(0) || (in_event(1) && in_arguments_ && member_ >= kArgumentName))) {
            event_[member_] = std::move(text);
        }
        return true;
    }

    void take_event() {
        if (event_[kPhase] == "M") {
            take_metadata();
        } else if (event_[kPhase] != "X") {
            ++trace_.skipped[std::string(kind_in_words(event_[kPhase]))];
        } else if (!take_slice()) {
            ++trace_.skipped["slices without a readable time"];
        }
    }

    void take_metadata() {
        const std::string& what = event_[kName];
        const std::string pid = shortened(event_[kPid]);
        if (trace_.process_names.size() + trace_.thread_names.size() > kMostTracks) {
            return;
        }
        if (what == "process_name") {
            trace_.process_names[pid] = shortened(event_[kArgumentName]);
        } else if (what == "process_labels") {
            trace_.process_labels[pid] = shortened(event_[kLabels]);
        } else if (what == "thread_name") {
            trace_.thread_names[pid + " " + shortened(event_[kTid])] =
                shortened(event_[kArgumentName]);
        }
    }

    // Returns false if the slice has no readable time.
    bool take_slice() {
        const auto begin_ns = nanoseconds(event_[kTime]);
        const auto duration_ns = nanoseconds(event_[kDuration]);
        if (!begin_ns || !duration_ns || *duration_ns > kMostTime_ns - *begin_ns) {
            return false;
        }
        const auto name = text_number(event_[kName]);
        const auto category = text_number(event_[kCategory]);
        ChromeTrack* const track = track_of(shortened(event_[kPid]), shortened(event_[kTid]));
        if (!name || !category || track == nullptr || trace_.slices >= kMostSlices) {
            ++trace_.skipped["slices beyond the limits of this command"];
            return true;
        }
        track->slices.push_back({*begin_ns, *begin_ns + *duration_ns, *name, *category});
        earliest_ns_ = std::min(earliest_ns_, *begin_ns);
        ++trace_.slices;
        return true;
    }

    static std::string shortened(const std::string& text) {
        return printable(text.substr(0, kMostNameBytes));
    }

    std::optional<std::uint32_t> text_number(const std::string& text) {
        const auto next = static_cast<std::uint32_t>(trace_.texts.size());
        std::string shown = shortened(text);
        const auto found = numbers_.find(shown);
        if (found != numbers_.end()) {
            return found->second;
        }
        text_bytes_ += shown.size() + sizeof(std::string);
        if (text_bytes_ > kMostTextBytes) {
            return std::nullopt;
        }
        trace_.texts.push_back(shown);
        numbers_.emplace(std::move(shown), next);
        return next;
    }

    ChromeTrack* track_of(const std::string& pid, const std::string& tid) {
        const auto found = track_numbers_.find({pid, tid});
        if (found != track_numbers_.end()) {
            return &trace_.tracks[found->second];
        }
        if (trace_.tracks.size() >= kMostTracks) {
            return nullptr;
        }
        track_numbers_.emplace(std::pair(pid, tid), trace_.tracks.size());
        return &trace_.tracks.emplace_back(ChromeTrack{pid, tid, {}});
    }

    ChromeTrace trace_;
    std::map<std::pair<std::string, std::string>, std::size_t> track_numbers_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::size_t text_bytes_ = 0;
    std::uint64_t base_ns_ = 0;
    std::uint64_t earliest_ns_ = kMostTime_ns;
    unsigned depth_ = 0;         // open objects and arrays
    unsigned events_depth_ = 0;  // depth inside the array of events; 0 = outside
    bool found_events_ = false;
    std::string key_;  // the last key of the outermost object
    Member member_ = kOther;
    bool in_arguments_ = false;
    std::array<std::string, kOther> event_;
};

}  // namespace

Result<ChromeTrace> read_chrome_trace(const std::string& path) {
    const auto file = InputFile::open(path);
    if (!file) {
        return file.error();
    }
    JsonBytes bytes(*file);
    Handler handler;
    std::string problem;
    ChromeTrace trace;
    if (nlohmann::json::sax_parse(JsonIterator(&bytes), JsonIterator(), &handler)) {
        problem = handler.finish(&trace);
    } else if (!bytes.failure().empty()) {
        problem = bytes.failure();
    } else {
        problem = fmt::format("{} near byte {}",
                              bytes.too_long()     ? "has a text longer than 1 MiB"
                              : handler.too_deep() ? "is nested too deeply"
                                                   : "is not valid JSON",
                              bytes.offset());
    }
    if (!problem.empty()) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: {}. Give the file that PyTorch's profiler wrote "
                                 "(export_chrome_trace).",
                                 path,
                                 problem)};
    }
    return trace;
}

}  // namespace fragtrace::analyzer
