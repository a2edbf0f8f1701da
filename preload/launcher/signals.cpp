#include "launcher/signals.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fragtrace::launcher {
namespace {

constexpr int kLastSignal = 64;

std::uint64_t bit_of(int signal) {
    return std::uint64_t{1} << (signal - 1);
}

std::uint64_t change_mask(int how, std::uint64_t mask) {
    std::uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, how, &mask, &before, sizeof mask);
    return before;
}

// Returns the next signal of `mask`; 0 if none arrived in the time (nullptr = no limit).
int take_signal(std::uint64_t mask, siginfo_t* info, const timespec* within) {
    for (;;) {
        const long signal = syscall(SYS_rt_sigtimedwait, &mask, info, within, sizeof mask);
        if (signal > 0) {
            return static_cast<int>(signal);
        }
        if (errno != EINTR || within != nullptr) {
            return 0;
        }
    }
}

void sleep_ms(long duration_ms) {
    const timespec duration = {0, duration_ms * 1'000'000};
    nanosleep(&duration, nullptr);
}

bool is_stopped(pid_t process) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(process));
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    char text[256];
    const ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    text[size < 0 ? 0 : size] = '\0';
    const char* name_end = strrchr(text, ')');  // "PID (NAME) STATE ..."
    return name_end != nullptr && (name_end[1] == ' ') &&
           (name_end[2] == 'T' || name_end[2] == 't');
}

// Starts a process that continues this one when the program runs again, because somebody may
// continue only the program. It has its own process group, so a terminal does not stop it.
pid_t start_waker(pid_t program) {
    const pid_t launcher = getpid();
    const pid_t waker = fork();
    if (waker == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == launcher && is_stopped(program)) {
            sleep_ms(20);
        }
        if (getppid() == launcher) {
            kill(launcher, SIGCONT);
        }
        _exit(0);
    }
    return waker;
}

// Stops this process by the same signal as the program. Returns when somebody continues it.
void stop_with(pid_t program, int signal) {
    const pid_t waker = start_waker(program);
    siginfo_t info = {};
    const timespec at_once = {};
    if (signal == SIGSTOP) {
        kill(getpid(), SIGSTOP);
    } else {
        struct sigaction usual = {};
        struct sigaction before = {};
        usual.sa_handler = SIG_DFL;
        sigaction(signal, &usual, &before);
        kill(getpid(), signal);
        change_mask(SIG_UNBLOCK, bit_of(signal));
        change_mask(SIG_BLOCK, bit_of(signal));
        sigaction(signal, &before, nullptr);
    }
    if (waker > 0) {
        kill(waker, SIGKILL);
        waitpid(waker, nullptr, 0);
    }
    // A shell continues the whole group, so the program may be running already.
    take_signal(bit_of(SIGCONT), &info, &at_once);
    for (int tries = 0; tries < 5 && is_stopped(program); ++tries) {
        sleep_ms(1);
    }
    if (is_stopped(program)) {
        kill(program, SIGCONT);
    }
}

void forward(pid_t program, int signal, const siginfo_t& info) {
    if (info.si_code == SI_QUEUE) {
        sigqueue(program, signal, info.si_value);
    } else {
        kill(program, signal);
    }
}

std::atomic<int> g_exit_code{0};

void leave(int /*signal*/) {
    _exit(g_exit_code.load(std::memory_order_relaxed));
}

}  // namespace

bool program_has_signal(const siginfo_t& info, bool leads_session) {
    if (info.si_code != SI_KERNEL) {
        return false;
    }
    switch (info.si_signo) {
        case SIGINT:
        case SIGQUIT:
        case SIGTSTP:
        case SIGTTIN:
        case SIGTTOU:
        case SIGWINCH:
            return true;
        case SIGHUP:  // if a terminal is closed, only the leader of its session gets these
        case SIGCONT:
            return !leads_session;
        default:
            return false;
    }
}

HeldSignals::HeldSignals() {
    before_ = change_mask(SIG_BLOCK, ~std::uint64_t{0});
    struct sigaction usual = {};
    struct sigaction before = {};
    usual.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &usual, &before);  // while SIGCHLD is ignored, a child's status is lost
    ignored_children_ = before.sa_handler == SIG_IGN;
}

void HeldSignals::give_back() const {
    if (ignored_children_) {
        struct sigaction ignored = {};
        ignored.sa_handler = SIG_IGN;
        sigaction(SIGCHLD, &ignored, nullptr);
    }
    change_mask(SIG_SETMASK, before_);
}

int HeldSignals::wait_for(pid_t program) {
    for (;;) {
        siginfo_t info = {};
        const int signal = take_signal(~std::uint64_t{0}, &info, nullptr);
        if (signal == SIGCHLD) {
            int status = 0;
            for (pid_t process = 0; (process = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
                if (process != program) {
                    continue;  // a child that this process had before exec of the launcher
                }
                if (!WIFSTOPPED(status)) {
                    return status;
                }
                stop_with(program, WSTOPSIG(status));
            }
        }
        const bool from_child = signal == SIGCHLD && info.si_code > 0;
        if (!from_child && !program_has_signal(info, getsid(0) == getpid())) {
            forward(program, signal, info);
        }
    }
}

void HeldSignals::end_with(int exit_code) {
    g_exit_code.store(exit_code, std::memory_order_relaxed);
    siginfo_t info = {};
    const timespec at_once = {};
    while (take_signal(~std::uint64_t{0}, &info, &at_once) !=
           0) {  // these were sent to the program, which has ended
    }
    for (int signal = 1; signal <= kLastSignal; ++signal) {
        switch (signal) {
            case SIGKILL:
            case SIGSTOP:
            case SIGTSTP:
            case SIGTTIN:
            case SIGTTOU:
            case SIGCONT:
            case SIGCHLD:
            case SIGURG:
            case SIGWINCH:
            case SIGILL:
            case SIGTRAP:
            case SIGABRT:
            case SIGBUS:
            case SIGFPE:
            case SIGSEGV:
                continue;
            default:
                break;
        }
        struct sigaction action = {};
        if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
            action.sa_handler = leave;
            sigaction(signal, &action, nullptr);
        }
    }
    change_mask(SIG_SETMASK, before_);
}

}  // namespace fragtrace::launcher
