// One line per request, in the order in which RMM served them (rapidsai/rmm,
// cpp/src/mr/detail/logging_resource_adaptor_impl.cpp):
//
//   Thread,Time,Action,Pointer,Size,Stream
//   1234,13:45:02.123456,allocate,0x7f3c00000000,1024,0
//
// The actions are allocate, free and allocate failure. The time is the local time of day in
// microseconds; older releases write a colon before them. The stream is a handle in hexadecimal;
// older releases write a decimal number.
#include "analyzer/imports/import_timeline.h"
#include "analyzer/imports/imports.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/support/byte_stream.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <optional>

namespace fragtrace::analyzer {
namespace {

constexpr std::string_view kHeader = "Thread,Time,Action,Pointer,Size,Stream";
constexpr std::size_t kMostLineBytes = 512;
constexpr std::uint64_t kSecond_us = 1'000'000;
constexpr std::uint64_t kDay_us = 24 * 3600 * kSecond_us;

std::optional<std::uint64_t> number(std::string_view text, int base = 10) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

std::optional<std::uint64_t> pointer(std::string_view text) {
    if (text == "(nil)") {
        return 0;
    }
    return text.starts_with("0x") ? number(text.substr(2), 16) : std::nullopt;
}

std::optional<std::uint64_t> stream_handle(std::string_view text) {
    if (text.starts_with("0x")) {
        return number(text.substr(2), 16);
    }
    const auto decimal = number(text);
    return decimal ? decimal : number(text, 16);
}

// Microseconds since midnight.
std::optional<std::uint64_t> time_of_day(std::string_view text) {
    if (text.size() != 15 || text[2] != ':' || text[5] != ':' ||
        (text[8] != '.' && text[8] != ':')) {
        return std::nullopt;
    }
    const auto hours = number(text.substr(0, 2));
    const auto minutes = number(text.substr(3, 2));
    const auto seconds = number(text.substr(6, 2));
    const auto micros = number(text.substr(9));
    if (!hours || !minutes || !seconds || !micros || *hours > 23 || *minutes > 59 ||
        *seconds > 60) {
        return std::nullopt;
    }
    return ((*hours * 60 + *minutes) * 60 + *seconds) * kSecond_us + *micros;
}

struct Entry {
    std::uint64_t thread;
    std::uint64_t time_us;
    EventKind kind;
    std::uint64_t address;
    std::uint64_t size_bytes;
    std::uint64_t stream;
};

std::optional<Entry> entry_of(std::string_view line) {
    std::array<std::string_view, 6> fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const std::size_t end = line.find(',');
        if ((end == std::string_view::npos) != (i + 1 == fields.size())) {
            return std::nullopt;
        }
        fields[i] = line.substr(0, end);
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    const auto& [thread_text, time_text, action, pointer_text, size_text, stream_text] = fields;
    const auto thread = number(thread_text);
    const auto time_us = time_of_day(time_text);
    const auto address = pointer(pointer_text);
    const auto size_bytes = number(size_text);
    const auto stream = stream_handle(stream_text);
    const EventKind kind = action == "allocate"           ? EventKind::kBlockAlloc
                           : action == "free"             ? EventKind::kBlockFree
                           : action == "allocate failure" ? EventKind::kBlockOutOfMemory
                                                          : EventKind::kNone;
    if (!thread || *thread > kUnknown32 || !time_us || !address || !size_bytes || !stream ||
        kind == EventKind::kNone) {
        return std::nullopt;
    }
    return Entry{*thread, *time_us, kind, *address, *size_bytes, *stream};
}

// RMM's Python package writes one log per device and puts the device into its name: log.dev1.csv.
std::optional<std::uint16_t> device_in_name(const std::string& path) {
    const std::size_t at = path.rfind(".dev");
    if (at == std::string::npos || path.find('/', at) != std::string::npos) {
        return std::nullopt;
    }
    const std::size_t begin = at + 4;
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const auto device = number(std::string_view(path).substr(begin, end - begin));
    return device && *device < 31 ? std::optional(static_cast<std::uint16_t>(*device))
                                  : std::nullopt;
}

class LogReader {
  public:
    LogReader(const std::string& path, const InputFile& file)
        : path_(path), stream_(file), device_(device_in_name(path)), timeline_(path, "RMM log") {}

    Result<Timeline> read() {
        while (const auto line = next_line()) {
            if (number_ == 1 || line->empty()) {
                continue;
            }
            const auto entry = entry_of(*line);
            if (!entry && !ended_by_newline_) {
                timeline_.warn("the last line is cut; it is left out");
                break;
            }
            if (!entry) {
                return error(fmt::format("line {} is no entry of an RMM log: '{}'",
                                         number_,
                                         printable(line->substr(0, 60))));
            }
            add(*entry);
        }
        if (!problem_.empty()) {
            return error(problem_);
        }
        if (left_out_ != 0) {
            timeline_.warn(fmt::format("{} of blocks without an address {} left out",
                                       format_counted(left_out_, "entry", "entries"),
                                       left_out_ == 1 ? "is" : "are"));
        }
        if (backwards_ != 0) {
            timeline_.warn(
                fmt::format("the clock runs backwards by more than 1 s {}; such entries "
                            "have the time of the entry before them",
                            format_counted(backwards_, "time", "times")));
        }
        say_what_is_missing();
        return timeline_.finish(0);
    }

  private:
    [[nodiscard]] Error error(const std::string& what) const {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: {}. Give the file that RMM's logging_resource_adaptor wrote "
                                 "(RMM_LOG_FILE).",
                                 path_,
                                 what)};
    }

    // The next line without its end; nullopt at the end of the file or after a problem. Valid until
    // the next call.
    std::optional<std::string_view> next_line() {
        stream_.skip(line_bytes_);
        line_bytes_ = 0;
        if (!stream_.require(1)) {
            problem_ = stream_.failure();
            return std::nullopt;
        }
        stream_.require(kMostLineBytes + 1);
        const std::size_t there = std::min(stream_.available(), kMostLineBytes + 1);
        const char* const begin = reinterpret_cast<const char*>(stream_.data());
        const auto* const end = static_cast<const char*>(std::memchr(begin, '\n', there));
        ++number_;
        if (end == nullptr && there > kMostLineBytes) {
            problem_ = fmt::format("line {} is longer than {} bytes", number_, kMostLineBytes);
            return std::nullopt;
        }
        if (end == nullptr && !stream_.failure().empty()) {
            problem_ = stream_.failure();
            return std::nullopt;
        }
        ended_by_newline_ = end != nullptr;
        std::string_view line(begin,
                              ended_by_newline_ ? static_cast<std::size_t>(end - begin) : there);
        line_bytes_ = line.size() + (ended_by_newline_ ? 1 : 0);
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        return line;
    }

    void add(const Entry& entry) {
        take_time(entry.time_us);
        const bool failure = entry.kind == EventKind::kBlockOutOfMemory;
        // A request of 0 bytes takes no memory.
        if (!failure && (entry.address == 0 || entry.size_bytes == 0)) {
            left_out_ += entry.size_bytes != 0 ? 1 : 0;
            return;
        }
        EventRecord event = {};
        event.kind = entry.kind;
        event.flags = kFlagSegmentUnknown;
        event.time_ns = now_us_ * 1000;
        event.device = device_.value_or(0);
        event.thread = static_cast<std::uint32_t>(entry.thread);
        event.stream = entry.stream;
        event.address = entry.address;
        event.size = entry.kind == EventKind::kBlockFree ? 0 : entry.size_bytes;
        event.extra = failure ? kUnknown64 : entry.size_bytes;
        timeline_.add(event);
    }

    // The log has no date. A step back of more than half a day is midnight.
    void take_time(std::uint64_t time_us) {
        if (!any_) {
            any_ = true;
            first_us_ = time_us;
        } else if (time_us + kDay_us / 2 < last_us_) {
            days_us_ += kDay_us;
        } else if (time_us + kSecond_us < last_us_) {
            ++backwards_;
        }
        last_us_ = time_us;
        const std::uint64_t now_us = days_us_ + time_us;
        now_us_ = std::max(now_us_, now_us > first_us_ ? now_us - first_us_ : 0);
    }

    void say_what_is_missing() {
        timeline_.lacks_reserved(
            "reserved memory: the segments of the pool, and its calls to the driver. So holes, "
            "cached memory, waste and retries of the recorded run are unknown, and no replay can "
            "be checked against it");
        timeline_.lacks(
            "the size of the card and its free memory. So the cause of a failed request is "
            "unknown, and replays need --capacity to run out of memory");
        timeline_.lacks("stacks, steps and phases. So memory is listed by size, not by line");
        timeline_.lacks(
            "the moment at which another stream could reuse a freed block. Replays reuse it when "
            "the pool's own rules allow it");
        timeline_.lacks(
            device_ ? "the date, the program and its process. Times are those since the first entry"
                    : "the date, the program, its process and the device. Times are those since "
                      "the first entry, and the device is shown as 0");
    }

    const std::string& path_;
    ByteStream stream_;
    std::optional<std::uint16_t> device_;
    ImportTimeline timeline_;
    std::size_t line_bytes_ = 0;
    std::uint64_t number_ = 0;  // of the current line, from 1
    bool ended_by_newline_ = false;
    std::string problem_;
    bool any_ = false;
    std::uint64_t first_us_ = 0;
    std::uint64_t last_us_ = 0;
    std::uint64_t days_us_ = 0;
    std::uint64_t now_us_ = 0;
    std::uint64_t left_out_ = 0;
    std::uint64_t backwards_ = 0;
};

}  // namespace

bool is_rmm_log(const InputFile& file) {
    ByteStream stream(file);
    return stream.require(kHeader.size()) &&
           std::memcmp(stream.data(), kHeader.data(), kHeader.size()) == 0;
}

Result<Timeline> read_rmm_log(const std::string& path, const InputFile& file) {
    return LogReader(path, file).read();
}

}  // namespace fragtrace::analyzer
