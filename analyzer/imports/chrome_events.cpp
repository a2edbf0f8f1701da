#include "analyzer/imports/chrome_events.h"

#include "analyzer/model/event.h"
#include "analyzer/support/byte_stream.h"
#include "analyzer/support/json_input.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Limits. Real profiles stay far below them.
constexpr std::size_t kMostTokenBytes = std::size_t{1} << 20;
constexpr unsigned kMostDepth = 64;
constexpr std::size_t kMostChromeDevices = 64;

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

// Called by the parser for each value. A member of an event is kept as text.
class Handler : public nlohmann::json_sax<nlohmann::json> {
  public:
    Handler(std::span<const std::string_view> wanted,
            const std::function<void(const ChromeEvent&)>& take,
            ChromeHead* head)
        : wanted_(wanted), take_(take), head_(*head) {}

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
        target_ = nullptr;
        if (events_depth_ != 0 && depth_ == events_depth_) {
            event_ = {};
            event_.arguments.resize(wanted_.size());
        } else if (in_device(0) && head_.devices.size() < kMostChromeDevices) {
            head_.devices.emplace_back();
        }
        return open();
    }

    bool end_object() override {
        --depth_;
        target_ = nullptr;
        if (events_depth_ != 0 && depth_ == events_depth_) {
            take_(event_);
        }
        return true;
    }

    bool start_array(std::size_t /*size*/) override {
        target_ = nullptr;
        // Either the whole file is the array of events, or its member "traceEvents" is.
        if (depth_ == 0 || (depth_ == 1 && key_ == "traceEvents" && !head_.has_events)) {
            events_depth_ = depth_ + 1;
            head_.has_events = true;
        }
        return open();
    }

    bool end_array() override {
        if (depth_ == events_depth_) {
            events_depth_ = 0;
        }
        --depth_;
        target_ = nullptr;
        return true;
    }

    bool key(string_t& text) override {
        target_ = nullptr;
        if (depth_ == 1) {
            key_ = std::move(text);
        } else if (in_event(0)) {
            in_arguments_ = text == "args";
            target_ = member_of(text);
        } else if (in_event(1) && in_arguments_) {
            const auto found = std::find(wanted_.begin(), wanted_.end(), text);
            target_ = found == wanted_.end()
                          ? nullptr
                          : &event_.arguments[static_cast<std::size_t>(found - wanted_.begin())];
        } else if (in_device(1) && !head_.devices.empty()) {
            ChromeDevice& device = head_.devices.back();
            target_ = text == "id"               ? &device.id
                      : text == "name"           ? &device.name
                      : text == "totalGlobalMem" ? &device.total_bytes
                                                 : nullptr;
        }
        return true;
    }

    bool parse_error(std::size_t /*position*/,
                     const std::string& /*token*/,
                     const nlohmann::json::exception& /*error*/) override {
        return false;
    }

    [[nodiscard]] bool too_deep() const { return depth_ > kMostDepth; }

  private:
    std::string* member_of(const std::string& key) {
        const std::array<std::pair<std::string_view, std::string*>, 7> members = {{
            {"ph", &event_.phase},
            {"name", &event_.name},
            {"cat", &event_.category},
            {"pid", &event_.pid},
            {"tid", &event_.tid},
            {"ts", &event_.time},
            {"dur", &event_.duration},
        }};
        for (const auto& [name, member] : members) {
            if (name == key) {
                return member;
            }
        }
        return nullptr;
    }

    // Whether the parser is inside an event, `deeper` levels below its own members.
    [[nodiscard]] bool in_event(unsigned deeper) const {
        return events_depth_ != 0 && depth_ == events_depth_ + 1 + deeper;
    }

    // The same for the objects of the array "deviceProperties".
    [[nodiscard]] bool in_device(unsigned deeper) const {
        return key_ == "deviceProperties" && depth_ == 2 + deeper;
    }

    bool open() {
        ++depth_;
        return !too_deep();
    }

    bool value(std::string text) {
        if (depth_ == 1 && key_ == "baseTimeNanoseconds") {
            head_.base_ns = scaled(text, 0).value_or(0);
        } else if (target_ != nullptr) {
            *target_ = std::move(text);
            target_ = nullptr;
        }
        return true;
    }

    std::span<const std::string_view> wanted_;
    const std::function<void(const ChromeEvent&)>& take_;
    ChromeHead& head_;
    ChromeEvent event_;
    std::string* target_ = nullptr;  // where the next value belongs; nullptr = nowhere
    unsigned depth_ = 0;             // open objects and arrays
    unsigned events_depth_ = 0;      // depth inside the array of events; 0 = outside
    std::string key_;                // the last key of the outermost object
    bool in_arguments_ = false;
};

}  // namespace

bool is_chrome_trace(const InputFile& file) {
    ByteStream stream(file);
    stream.require(ByteStream::kMostAtOnce);
    const std::string_view begin(reinterpret_cast<const char*>(stream.data()), stream.available());
    const std::size_t first = begin.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && begin[first] == '{' &&
           begin.find("\"traceEvents\"") != std::string_view::npos;
}

std::string read_chrome_events(const InputFile& file,
                               std::span<const std::string_view> wanted_arguments,
                               const std::function<void(const ChromeEvent&)>& take,
                               ChromeHead* head) {
    JsonBytes bytes(file);
    Handler handler(wanted_arguments, take, head);
    if (nlohmann::json::sax_parse(JsonInput<JsonBytes>(&bytes), JsonInput<JsonBytes>(), &handler)) {
        return head->has_events ? "" : "has no traceEvents";
    }
    if (!bytes.failure().empty()) {
        return bytes.failure();
    }
    return fmt::format("{} near byte {}",
                       bytes.too_long()     ? "has a text longer than 1 MiB"
                       : handler.too_deep() ? "is nested too deeply"
                                            : "is not valid JSON",
                       bytes.offset());
}

std::optional<std::uint64_t> chrome_nanoseconds(std::string_view microseconds) {
    return scaled(microseconds, 3);
}

}  // namespace fragtrace::analyzer
