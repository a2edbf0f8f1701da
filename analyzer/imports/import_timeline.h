// Collects the events of an import and makes a Timeline of them.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/model/timeline.h"
#include "analyzer/trace/builder.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::size_t kMostDevices = 31;  // of an import

// Earlier times (before September 2001) are not taken for unix times.
inline constexpr std::uint64_t kUnixTimesFrom_ns = 1'000'000'000'000'000'000;

// Not thread-safe.
class ImportTimeline {
  public:
    // `source` names the format in a sentence: "RMM log".
    ImportTimeline(std::string path, const std::string& source);

    // The builder of stacks and facts. Add events with add().
    TimelineBuilder& builder() { return builder_; }

    // Adds an event after all others; its sequence number is set here.
    void add(EventRecord event);

    // The number by which an event names a text: the N of a fact text.N.
    std::uint64_t text_number(const std::string& text);

    // Says what the input does not contain and what the report therefore cannot say: one or more
    // whole sentences.
    void lacks(const std::string& sentence);
    // The input has blocks, but not the memory that their pool reserved (shows_reserved()).
    void lacks_reserved(const std::string& sentence);
    // The input does not show all failed requests (shows_failures()).
    void lacks_failures(const std::string& sentence);

    // A defect of the input, for the report's warnings.
    void warn(std::string line) { warnings_.push_back(std::move(line)); }

    // "3 memory events of other processes are left out"; nothing for a count of 0. `what` is a
    // singular.
    void warn_left_out(std::uint64_t count, std::string_view what, std::string_view which);

    [[nodiscard]] std::uint64_t events() const { return sequence_; }

    // `start_unix_ns`: the time of time_ns = 0; 0 = unknown. The object is empty afterwards.
    Timeline finish(std::uint64_t start_unix_ns);

  private:
    std::string path_;
    TimelineBuilder builder_;
    std::vector<std::string> warnings_;
    std::map<std::string, std::uint64_t> texts_;
    std::uint64_t sequence_ = 0;
    unsigned sentences_ = 0;
};

}  // namespace fragtrace::analyzer
