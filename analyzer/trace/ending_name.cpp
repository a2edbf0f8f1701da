#include "analyzer/trace/ending_name.h"

namespace fragtrace::analyzer {

const char* ending_name(Ending ending) {
    switch (ending) {
        case Ending::kNormal:
            return "normal";
        case Ending::kQuickExit:
            return "quick_exit";
        case Ending::kExec:
            return "exec";
        case Ending::kKilled:
            return "killed";
        case Ending::kRunning:
            return "running";
        case Ending::kContinued:
            return "continued";
        case Ending::kNotRecorded:
            return "not_recorded";
    }
    return "not_recorded";
}

}  // namespace fragtrace::analyzer
