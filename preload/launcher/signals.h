// Signals between the launcher's caller and the program: the launcher passes every signal on to the
// program, and stops and continues with it.
#pragma once

#include <csignal>
#include <cstdint>
#include <sys/types.h>

namespace fragtrace::launcher {

// Blocks all signals of this process, so that early ones wait for the program. A child gets the
// original mask and handlers of this process. The two signals that the C library reserves for
// itself are blocked too; therefore the code uses system calls directly, with a mask of 64 bits.
class HeldSignals {
  public:
    HeldSignals();
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

    // Restores the original mask and handlers in a child, before exec. Uses only system calls.
    void give_back() const;

    // Waits until `program` has ended, passes signals on to it, and stops when it stops. Returns
    // its status as waitpid does.
    int wait_for(pid_t program);

    // After this call, a signal that would end this process ends it with this exit code, wherever
    // it waits: the program has ended, and nobody has to wait for a report.
    void end_with(int exit_code);

  private:
    std::uint64_t before_ = 0;
    bool ignored_children_ = false;
};

// Returns true if the kernel sent this signal for a terminal, to every process of the foreground
// group: the program has then received it already.
bool program_has_signal(const siginfo_t& info, bool leads_session);

}  // namespace fragtrace::launcher
