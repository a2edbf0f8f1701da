// The trace of a running process, followed while it grows: file and ring, read only.
//
// What the drain has not written yet is taken from the ring. Nothing of the process is touched: its
// files are found by the links in /proc. Events come without stacks and streams, which nobody who
// watches needs, and are not kept: a recording may run for weeks. Not thread-safe.
#pragma once

#include "analyzer/model/recorded_state.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// A process of this user that is being recorded.
struct RecordedProcess {
    std::uint32_t pid = 0;
    std::string trace;  // the file that it writes now
};

std::vector<RecordedProcess> recorded_processes();

class LiveTrace {
  public:
    // Errors (kInput): no such process, not recorded, or of another user.
    static Result<LiveTrace> open(std::uint32_t pid);

    // Applies what is new to the state, which is empty at first and is made so again where another
    // file is found: a part begins with a checkpoint, a new recording with nothing. False once the
    // process has ended or records into no file any more; all that it left has been read then.
    bool update(RecordedState* state);

    // The file that the process writes, or wrote last.
    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] std::uint64_t last_sequence() const { return last_sequence_; }

    [[nodiscard]] std::uint64_t events_lost() const { return events_lost_; }

  private:
    bool open_file(const std::string& path);
    void read_file(RecordedState* state);
    void add(const EventRecord& record, RecordedState* state);

    std::uint32_t pid_ = 0;
    TraceHeader header_ = {};
    std::uint64_t offset_ = 0;  // of the first chunk that was not read
    std::uint64_t last_sequence_ = 0;
    std::uint64_t events_lost_ = 0;
    bool any_event_ = false;
    std::string path_;
};

}  // namespace fragtrace::analyzer
