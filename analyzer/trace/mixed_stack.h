// Merges the native frames and the Python frames of an event into one stack.
//
// Pure functions over frames that already have names. See docs/trace-format.md, kStacks.
#pragma once

#include "analyzer/model/timeline.h"

#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// One native call, innermost frame first: the functions inlined into it, then the function itself.
struct NativeCall {
    const std::vector<Frame>* frames;
    bool evaluator;  // the interpreter's function that runs Python frames
};

struct PythonCall {
    Frame frame;
    bool entry;  // an evaluator was called for this frame
};

bool is_interpreter(const Frame& frame);
bool is_evaluator(const Frame& frame);

// Both stacks are innermost first, without the recorder's own frames. Each evaluator is replaced by
// the Python frames that it runs. Other frames of the interpreter are left out, and so are the C
// library's frames outside the outermost Python frame. A stack that is `cut` lacks outer frames.
// Returns nullopt if the evaluators and the entries do not match.
std::optional<std::vector<Frame>> mix_stacks(const std::vector<NativeCall>& native,
                                             bool native_cut,
                                             const std::vector<PythonCall>& python,
                                             bool python_cut);

}  // namespace fragtrace::analyzer
