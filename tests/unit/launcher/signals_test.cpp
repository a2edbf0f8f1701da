#include "launcher/signals.h"

#include <catch2/catch.hpp>

using namespace fragtrace::launcher;

namespace {

siginfo_t signal_from(int code, int number) {
    siginfo_t info = {};
    info.si_signo = number;
    info.si_code = code;
    return info;
}

}  // namespace

TEST_CASE("a signal that the terminal sends to the whole foreground group is not forwarded") {
    for (const int number : {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH}) {
        CAPTURE(number);
        CHECK(program_has_signal(signal_from(SI_KERNEL, number), false));
        CHECK(program_has_signal(signal_from(SI_KERNEL, number), true));
        CHECK_FALSE(program_has_signal(signal_from(SI_USER, number), false));
        CHECK_FALSE(program_has_signal(signal_from(SI_QUEUE, number), false));
    }
}

TEST_CASE("a hang-up is forwarded if only the launcher gets it, as session leader") {
    for (const int number : {SIGHUP, SIGCONT}) {
        CHECK_FALSE(program_has_signal(signal_from(SI_KERNEL, number), true));
        CHECK(program_has_signal(signal_from(SI_KERNEL, number), false));
    }
}

TEST_CASE("timer signals and other kernel signals are forwarded") {
    for (const int number : {SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGIO, SIGTERM, SIGPIPE}) {
        CHECK_FALSE(program_has_signal(signal_from(SI_KERNEL, number), false));
    }
}
