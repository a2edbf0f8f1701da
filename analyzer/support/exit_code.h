// The meaning of fraganalyze's exit status. It is documented and must stay stable.
#pragma once

namespace fragtrace::analyzer {

enum class ExitCode : int {
    kFine = 0,
    kCheckFailed = 1,   // a check or threshold failed
    kBadInput = 2,      // bad usage, or input that cannot be read
    kInterrupted = 130  // by Ctrl-C
};

}  // namespace fragtrace::analyzer
