// The events of a trace one after the other, none of them kept: for what must work on a trace of
// any length. The tables that give stacks their names are read as well; they grow with the program,
// not with the time that it runs.
//
// Reads the file several times; only take_over_ring() changes it. Not thread-safe.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/result.h"
#include "analyzer/trace/ring.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fragtrace::analyzer {

// Without what only a whole trace knows: origin and stream.
Event event_of(const EventRecord& record);

inline constexpr std::uint64_t kAllEvents = ~std::uint64_t{0};

class EventStream {
  public:
    static Result<EventStream> open(const std::string& path);

    // One pass over the events in the order of their sequence numbers, or over the first `most`.
    // What comes late or twice is left out and counted. The index is the event's in a timeline of
    // this trace.
    void for_each(const std::function<
                      void(EventIndex index, const Event& event, const EventRecord& record)>& visit,
                  std::uint64_t most = kAllEvents);

    // A timeline without events: facts, stacks, how it ended, damage. After a pass.
    Timeline tables();

    // See take_over_ring().
    std::optional<std::uint64_t> take_over_ring();

    [[nodiscard]] std::uint64_t events_left_out() const { return left_out_; }

  private:
    EventStream(std::string path, InputFile file, const TraceHeader& header);

    std::string path_;
    InputFile file_;
    TraceHeader header_;
    bool running_ = false;
    RingContents ring_;
    std::uint64_t left_out_ = 0;
};

// Moves what the ring of a process that is gone has into its trace, as ReadOptions::absorb_ring
// does, for a trace of any length. How many events; none: there was no such ring, or it had to
// stay.
Result<std::optional<std::uint64_t>> take_over_ring(const std::string& path);

}  // namespace fragtrace::analyzer
