// Follows the trace of a running process while it grows. Reads the file and the ring, changes
// neither.
//
// Events that are not in the file yet come from the ring. The process itself is not touched: the
// links in /proc lead to its files. Events have no stacks and streams, because live views do not
// need them. They are not stored, because a recording may run for weeks. Not thread-safe.
#pragma once

#include "analyzer/model/recorded_state.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// A process of this user that is being recorded.
struct RecordedProcess {
    std::uint32_t pid = 0;
    std::string trace;  // the file that it is writing
};

std::vector<RecordedProcess> recorded_processes();

class LiveTrace {
  public:
    // Errors (kInput): no such process, the process is not recorded, or it belongs to another user.
    static Result<LiveTrace> open(std::uint32_t pid);

    // Applies new events to the state, which must be empty at first. If the process has started
    // another file, the state is emptied first: a new part begins with a checkpoint, a new
    // recording with nothing. Returns false once the process has ended or writes no trace file any
    // more; everything that it wrote has then been read.
    // `seen` gets each new event after it was applied.
    bool update(RecordedState* state, const std::function<void(const Event&)>& seen = {});

    // The file that the process writes or wrote last.
    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] std::uint64_t last_sequence() const { return last_sequence_; }

    [[nodiscard]] std::uint64_t events_lost() const { return events_lost_; }

    // What the recorder knows about a device, such as its "uuid" and its "name"
    // (docs/trace-format.md, facts device.N.*). Empty: not known (yet). Untrusted text on one line.
    [[nodiscard]] std::string device_fact(DeviceId device, std::string_view key) const;

    // The process's rank in its job; -1 = unknown.
    [[nodiscard]] std::int32_t rank() const { return header_.rank; }

  private:
    bool open_file(const std::string& path);
    void read_file(RecordedState* state, const std::function<void(const Event&)>& seen);
    void add(const EventRecord& record,
             RecordedState* state,
             const std::function<void(const Event&)>& seen);

    std::uint32_t pid_ = 0;
    TraceHeader header_ = {};
    std::uint64_t offset_ = 0;  // of the first chunk that was not read yet
    std::uint64_t last_sequence_ = 0;
    std::uint64_t events_lost_ = 0;
    bool any_event_ = false;
    std::string facts_;  // lines of the ring's facts about devices
    std::string path_;
};

}  // namespace fragtrace::analyzer
