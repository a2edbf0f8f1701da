// The trace of a running process, followed while it grows: file and ring, read only.
//
// What the drain has not written yet is taken from the ring. Nothing of the process is touched: its
// files are found by the links in /proc. Events come without stacks and streams, which nobody who
// watches needs. Not thread-safe.
#pragma once

#include "analyzer/model/timeline.h"
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

    // Reads what is new. False once the process has ended or records into no file any more; all
    // that it left has been read then.
    bool update();

    // Only grows, until restarted() says that it begins anew.
    [[nodiscard]] const Timeline& timeline() const { return timeline_; }

    // True if the last update() found another part of the recording, which begins with a
    // checkpoint.
    [[nodiscard]] bool restarted() const { return restarted_; }

    [[nodiscard]] std::uint64_t last_sequence() const { return last_sequence_; }

    [[nodiscard]] std::uint64_t events_lost() const { return events_lost_; }

  private:
    bool open_file(const std::string& path);
    void read_file();
    void add(const EventRecord& record);

    std::uint32_t pid_ = 0;
    TraceHeader header_ = {};
    std::uint64_t offset_ = 0;  // of the first chunk that was not read
    std::uint64_t last_sequence_ = 0;
    std::uint64_t events_lost_ = 0;
    bool restarted_ = false;
    Timeline timeline_;
};

}  // namespace fragtrace::analyzer
