// The launcher's place between its caller and the program: every signal goes to the program, and
// the launcher stops and continues with it.
#pragma once

#include <csignal>
#include <cstdint>
#include <sys/types.h>

namespace fragtrace::launcher {

// Holds back all signals of this process, so that early ones wait for the program. A child gets the
// mask and the handling that this process was started with. The two signals that the C library
// keeps for itself are held, too: hence the kernel's own calls and a mask of 64 bits.
class HeldSignals {
  public:
    HeldSignals();
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

    // In a child, before exec. Asks the kernel alone.
    void give_back() const;

    // Waits until `program` has ended, passes signals on to it, and stops when it stops. Returns
    // its status, as waitpid gives it.
    int wait_for(pid_t program);

    // From here on every signal that would end this process ends it with this exit code, wherever
    // it waits: the program has ended, and nobody has to wait for a report.
    void end_with(int exit_code);

  private:
    std::uint64_t before_ = 0;
    bool ignored_children_ = false;
};

// True when the kernel has sent this signal for a terminal, to every process of the foreground: the
// program has it already.
bool program_has_signal(const siginfo_t& info, bool leads_session);

}  // namespace fragtrace::launcher
