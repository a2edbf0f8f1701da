// Writes the packets of a Perfetto trace to a stream, each as it is made.
// https://perfetto.dev/docs/reference/trace-packet-proto
//
// All texts must be valid UTF-8 (printable() makes them so). Not thread-safe.
#pragma once

#include "analyzer/support/protobuf.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace fragtrace::analyzer {

class PerfettoFile {
  public:
    using Track = std::uint64_t;  // never 0

    // A text that is stored once in the file. 0 is no text.
    struct Text {
        std::uint64_t number = 0;
    };

    struct Address {
        std::uint64_t value = 0;
    };

    // An entry in the details of a slice. `name` must live as long as the file.
    struct Argument {
        std::string_view name;
        std::variant<std::uint64_t, Address, Text, std::string> value;
    };

    // All times are nanoseconds of the clock CLOCK_REALTIME (unix time), or of an unknown clock if
    // `start_unix_ns` is 0.
    PerfettoFile(std::FILE* file, std::uint64_t start_unix_ns);

    struct Process {
        std::uint32_t pid = 0;
        std::string name;
        std::string command_line;         // empty = not known
        std::vector<std::string> labels;  // shown beside the name
    };

    Track add_process(const Process& process);
    Track add_thread(std::uint32_t pid, std::uint32_t tid);
    // A track for slices and instants, or for further tracks. Parent 0 = none.
    Track add_track(Track parent, const std::string& name);
    Track add_counter(Track parent, const std::string& name);

    // The name of a slice or instant. Equal texts get the same number.
    Text name(const std::string& text);
    // For long texts that the caller numbers: each call stores the text again.
    Text add_argument_text(const std::string& text);
    Text category(const std::string& text);

    // On each track, the calls must come in order of time. end() ends the innermost open slice.
    void begin(Track track,
               std::uint64_t time,
               Text name,
               Text category,
               const std::vector<Argument>& arguments = {});
    void end(Track track, std::uint64_t time, const std::vector<Argument>& arguments = {});
    void instant(Track track,
                 std::uint64_t time,
                 Text name,
                 const std::vector<Argument>& arguments = {});
    void count(Track track, std::uint64_t time, std::uint64_t value);

    // Passes everything to the stream.
    void finish();

  private:
    void add(ProtoMessage* packet);
    void add_descriptor(const ProtoMessage& descriptor);
    void add_event(std::uint64_t time, const ProtoMessage& event);
    void add_arguments(ProtoMessage* event, const std::vector<Argument>& arguments);
    Text intern(std::uint32_t table, std::uint64_t number, const std::string& text);
    Text intern_once(std::uint32_t table,
                     std::unordered_map<std::string, std::uint64_t>* numbers,
                     const std::string& text);

    std::FILE* file_;
    std::string buffer_;
    Track last_track_ = 0;
    std::uint64_t last_argument_text_ = 0;
    std::unordered_map<std::string, std::uint64_t> names_;
    std::unordered_map<std::string, std::uint64_t> categories_;
    std::unordered_map<std::string, std::uint64_t> argument_names_;
    ProtoMessage event_;
    ProtoMessage packet_;
};

}  // namespace fragtrace::analyzer
