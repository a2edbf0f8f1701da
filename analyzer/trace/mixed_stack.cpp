#include "analyzer/trace/mixed_stack.h"

#include "analyzer/trace/base_name.h"

#include <string_view>

namespace fragtrace::analyzer {
namespace {

bool is_interpreter_module(std::string_view path) {
    const std::string_view name = base_name(path);
    if (name.starts_with("libpython")) {
        return true;
    }
    // "python", "python3", "python3.11", "python3.11-dbg"; not "python_helper".
    return name.starts_with("python") &&
           (name.size() == 6 || (name[6] >= '0' && name[6] <= '9') || name[6] == '-');
}

bool is_c_library(const Frame& frame) {
    const std::string_view name = base_name(frame.module);
    return name.starts_with("libc.") || name.starts_with("libc-") ||
           name.starts_with("libpthread") || name.starts_with("ld-");
}

}  // namespace

bool is_interpreter(const Frame& frame) {
    return is_interpreter_module(frame.module) || frame.function.starts_with("_PyEval_") ||
           frame.function.starts_with("PyEval_");
}

bool is_evaluator(const Frame& frame) {
    // Compilers split this function and add ".cold", ".part.0", ".localalias" or ".llvm.NUMBER".
    constexpr std::string_view kName = "_PyEval_EvalFrameDefault";
    // Python 3.14 and later may be built with instructions as functions that tail-call each other.
    // One of these is then the evaluator's frame. Without symbols, such an interpreter cannot be
    // recognised.
    if (frame.function.starts_with("_TAIL_CALL_")) {
        return true;
    }
    return frame.function.starts_with(kName) &&
           (frame.function.size() == kName.size() || frame.function[kName.size()] == '.');
}

std::optional<std::vector<Frame>> mix_stacks(const std::vector<NativeCall>& native,
                                             bool native_cut,
                                             const std::vector<PythonCall>& python,
                                             bool python_cut) {
    std::vector<Frame> result;
    std::size_t next = 0;
    for (const NativeCall& call : native) {
        if (call.evaluator) {
            if (next == python.size() && !python_cut) {
                return std::nullopt;
            }
            bool entered = false;
            for (; next < python.size() && !entered; ++next) {
                result.push_back(python[next].frame);
                entered = python[next].entry;
            }
        } else if (!is_interpreter(call.frames->back())) {
            result.insert(result.end(), call.frames->begin(), call.frames->end());
        }
    }
    if (next < python.size() && !native_cut) {
        return std::nullopt;
    }
    for (; next < python.size(); ++next) {
        result.push_back(python[next].frame);
    }
    while (!result.empty() && result.back().kind == Frame::Kind::kNative &&
           is_c_library(result.back())) {
        result.pop_back();
    }
    return result;
}

}  // namespace fragtrace::analyzer
