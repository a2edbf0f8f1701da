// One stack out of the native frames and the Python frames of an event.
//
// Pure functions over frames that are named already. Docs: docs/trace-format.md, kStacks.
#pragma once

#include "analyzer/model/timeline.h"

#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// One call, innermost first: the functions that were inlined into it, then itself.
struct NativeCall {
    const std::vector<Frame>* frames;
    bool evaluator;  // the function of the interpreter that runs Python frames
};

struct PythonCall {
    Frame frame;
    bool entry;  // an evaluator was called for it
};

bool is_interpreter(const Frame& frame);
bool is_evaluator(const Frame& frame);

// Both innermost first, without the recorder's own frames. Each evaluator is replaced by the Python
// frames that it runs; other frames of the interpreter, and what the C library puts before the
// outermost Python frame, are left out. A stack that is `cut` lacks outer frames. None where the
// evaluators and the entries do not match.
std::optional<std::vector<Frame>> mix_stacks(const std::vector<NativeCall>& native,
                                             bool native_cut,
                                             const std::vector<PythonCall>& python,
                                             bool python_cut);

}  // namespace fragtrace::analyzer
