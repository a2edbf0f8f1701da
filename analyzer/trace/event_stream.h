// Reads the events of a trace one after the other without storing them, so it works on traces of
// any length. It also reads the tables that give stacks their names. They grow with the program's
// code, not with its run time.
//
// Reads the file several times; only take_over_ring() changes it. Not thread-safe.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/result.h"
#include "analyzer/trace/ring_reader.h"
#include "analyzer/trace/traced_process.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Origin and stream stay unset, because their numbers depend on the whole trace.
Event event_of(const EventRecord& record);

inline constexpr std::uint64_t kAllEvents = ~std::uint64_t{0};

class TimelineBuilder;

class EventStream {
  public:
    static Result<EventStream> open(const std::string& path);

    // One pass over the events in the order of their sequence numbers, at most the first `most`.
    // Late and duplicate events are left out and counted. The index is the event's index in a
    // timeline of this trace. It has 64 bits: a timeline has at most 2^32 events, a trace any
    // number.
    void for_each(const std::function<void(
                      std::uint64_t index, const Event& event, const EventRecord& record)>& visit,
                  std::uint64_t most = kAllEvents);

    // Returns a timeline with the events that `add_events` adds: facts, stacks, how the process
    // ended, damage.
    Timeline timeline(const std::function<void(TimelineBuilder* builder)>& add_events);

    // The same without events.
    Timeline tables();

    // Does the work of the function take_over_ring() below.
    std::optional<std::uint64_t> take_over_ring();

    [[nodiscard]] std::uint64_t events_left_out() const { return left_out_; }

    // What is wrong with the events of the last pass, as TraceDamage::notes.
    [[nodiscard]] std::vector<std::string> notes_of_pass() const;

  private:
    EventStream(std::string path, InputFile file, const TraceHeader& header);

    // A part may announce a next part that the process did not live to start. The ring then still
    // continues this part.
    [[nodiscard]] bool goes_on_in_ring(bool continued) const {
        return continued && ring_.state == RingContents::State::kRead;
    }

    std::string path_;
    InputFile file_;
    TraceHeader header_;
    ProcessState state_ = ProcessState::kUnknown;
    RingContents ring_;
    // Of the last pass:
    std::uint64_t passed_on_ = 0;
    std::uint64_t left_out_ = 0;
    std::uint64_t impossible_ = 0;
    std::uint64_t numbers_missing_ = 0;
};

// Moves the events in the ring of a dead process into its trace, like ReadOptions::absorb_ring, but
// for traces of any length. Returns the number of events; nullopt if there was no such ring, or if
// it had to stay.
Result<std::optional<std::uint64_t>> take_over_ring(const std::string& path);

}  // namespace fragtrace::analyzer
