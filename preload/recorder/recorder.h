// The recorder's core as the hooks see it: they pass events in, and the ring and the drain do the
// rest.
//
// It knows nothing about CUDA, PyTorch or the hooks, so a test can drive it in-process. It uses no
// heap and no stdio after start-up, never throws and preserves errno. A failure of the recorder is
// counted, and the host program continues as if there were no recorder. All functions can be called
// from any thread at any time after the library is loaded, including from static destructors.
#pragma once

#include <fragtrace/format.h>

#include <stdint.h>

namespace fragtrace::preload {

// Marks the calling thread as inside a hooked call. So calls that the real function makes are not
// recorded again (only the outermost hook records), and the recorder's own calls are not recorded.
// Scopes can be nested.
//
// An exception or longjmp from another interposer can leave a hook without running its destructor.
// So a scope becomes the outermost one if it is not below the old outermost scope on the stack, or
// finds that scope overwritten.
class HookScope {
  public:
    HookScope();
    ~HookScope();
    HookScope(const HookScope&) = delete;
    HookScope& operator=(const HookScope&) = delete;

    // True for the outermost hook of this thread, the one that records.
    [[nodiscard]] bool outermost() const { return outermost_; }

  private:
    volatile uint64_t mark_ = 0;  // set while this scope is the outermost one: proves that its
                                  // stack frame still exists
    bool outermost_;
};

// The stacks of the calling thread as nodes of the stack tree; {0, 0} if stacks are off.
struct Stacks {
    uint32_t native = 0;
    uint32_t python = 0;
};

Stacks capture_stacks();

// Returns nanoseconds of CLOCK_MONOTONIC (clock.h describes the precision). Never decreases within
// a thread.
uint64_t now_ns();

// Puts one event into the ring. The caller fills kind, flags, device, address, size, extra, stream,
// duration_ns and the stacks. record() sets the sequence, and sets time and thread if they are 0.
// The first event, or the first capture_stacks, starts the session: file, ring, drain thread.
// Returns the event's sequence number, or 0 if the event was lost (and counted). Waits a bounded
// time for room.
uint64_t record(const EventRecord& event);

// Returns true if a signal handler interrupted the recorder on this thread. The handler's calls
// cannot be recorded; each one counts as a lost event.
bool refuse_call_from_handler();

// Records `key = value` in the trace. If a key is repeated, the last value counts. The text is
// copied and cut at 4 KiB. Before the session starts, facts are kept in a small fixed store.
void record_fact(const char* key, const char* value);

// Returns false if recording is switched off (FRAGTRACE_OFF=1, a forked child that stays off, or a
// failure of the recorder). Hooks then only pass calls on.
bool recording_enabled();

// Writes all events so far to the file, then ends the trace for `reason` with an end chunk, index
// and trailer. Later events still reach the file: the drain or the `last` finish(), which removes
// the ring's file, writes them. After the last finish(), the thread that records an event writes
// it.
void finish(EndReason reason, bool last);

}  // namespace fragtrace::preload
