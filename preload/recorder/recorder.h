// The recorder's core as the hooks see it: an event goes in, the ring and the drain do the rest.
//
// Knows nothing of CUDA, PyTorch or how it is reached, so it can be driven by a test in-process.
// Guarantees: no heap, no stdio after start-up, never throws, keeps errno; a failure of the
// recorder is counted and the host goes on as if it were not there. All functions may be called
// from any thread at any time after the library is loaded, static destructors included.
#pragma once

#include <fragtrace/format.h>

#include <stdint.h>

namespace fragtrace::preload {

// Marks the calling thread as inside a hooked call, so that what the real function calls in turn
// is recorded once, by the outermost hook, and so that the recorder's own calls are not recorded.
// Nesting is safe. Where another interposer's exception or longjmp passed through a hook, no
// destructor ran: a scope that does not lie below the outermost one, or finds it overwritten, takes
// its place.
class HookScope {
  public:
    HookScope();
    ~HookScope();
    HookScope(const HookScope&) = delete;
    HookScope& operator=(const HookScope&) = delete;

    // True for the outermost hook of this thread: the one that records.
    [[nodiscard]] bool outermost() const { return outermost_; }

  private:
    volatile uint64_t mark_ = 0;  // while this is the outermost one; says that its frame lives
    bool outermost_;
};

// The stacks of the calling thread as nodes of the stack tree; {0, 0} when stacks are off.
struct Stacks {
    uint32_t native = 0;
    uint32_t python = 0;
};

Stacks capture_stacks();

// Nanoseconds of CLOCK_MONOTONIC (clock.h says how exact); never goes back within a thread.
uint64_t now_ns();

// Hands one event to the ring. The caller fills kind, flags, device, address, size, extra, stream,
// duration_ns and the stacks; sequence, time and thread are set here (time and thread only where
// they are 0). The first event (or
// the first capture_stacks) starts the session: file, ring, drain thread. Returns the
// event's sequence number, 0 if it was lost (counted). Waits for room at most a bounded time.
uint64_t record(const EventRecord& event);

// True when a signal handler interrupted the recorder on this thread: what the handler calls cannot
// be recorded, and is counted as one lost event.
bool refuse_call_from_handler();

// Records `key = value` in the trace; repeated keys: the last wins. Text is copied (truncated at
// 4 KiB). Before the session starts, facts are kept in a small fixed store and written with it.
void record_fact(const char* key, const char* value);

// False when recording is switched off (FRAGTRACE_OFF=1, a forked child that stays off, or a
// failure of the recorder): hooks then do nothing but pass calls on.
bool recording_enabled();

// Writes everything recorded so far to the file. `reason` ends the trace: an end chunk, index and
// trailer are written. Events that come later still reach the file: by the drain, or by the `last`
// finish(), which removes the ring's file; after it by the thread that records them.
void finish(EndReason reason, bool last);

}  // namespace fragtrace::preload
