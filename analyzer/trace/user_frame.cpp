#include "analyzer/trace/user_frame.h"

#include "analyzer/support/text.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/base_name.h"
#include "analyzer/trace/code_files.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

bool is_interpreter_module(const Frame& frame) {
    const std::string_view name = base_name(frame.module);
    return name.starts_with("python") || name.starts_with("libpython");
}

bool is_evaluator_name(std::string_view function) {
    return function.starts_with("_PyEval_") || function.starts_with("PyEval_");
}

// If the module is not known, the namespace identifies the framework.
bool is_framework(const Frame& frame) {
    return base_name(frame.module).starts_with("libtorch") ||
           (frame.module.empty() && frame.kind == Frame::Kind::kNative &&
            (frame.function.starts_with("at::") || frame.function.starts_with("torch::")));
}

// Without a module (in snapshots of PyTorch), a source line tells the program's own functions:
// those of the installed libraries have none.
bool is_own_source(const Frame& frame) {
    constexpr std::array<std::string_view, 6> kForeign = {
        "c10::", "at::", "torch::", "std::", "_", "Py"};
    return frame.line != 0 && !frame.file.empty() &&
           std::none_of(kForeign.begin(), kForeign.end(), [&frame](std::string_view begin) {
               return frame.function.starts_with(begin);
           });
}

// Modules whose functions only pass requests on to others.
bool is_plumbing(const Frame& frame) {
    constexpr std::array<std::string_view, 20> kNames = {
        "libfragtrace", "libcuda.",  "libcudart",   "libcublas",   "libcudnn",
        "libcufft",     "libcurand", "libcusolver", "libcusparse", "libnccl",
        "libnv",        "libc10",    "libtorch",    "libc.so",     "libc-",
        "libpthread",   "libstdc++", "libgcc_s",    "ld-linux",    "libdl"};
    const std::string_view name = base_name(frame.module);
    const bool from_mark_h = frame.function.starts_with("fragtrace_");
    return (name.empty() && !is_own_source(frame)) || from_mark_h || is_interpreter_module(frame) ||
           std::any_of(kNames.begin(), kNames.end(), [name](std::string_view part) {
               return name.starts_with(part);
           });
}

// Returns where the last component of a qualified name begins. A component includes its template
// arguments.
std::size_t last_component(std::string_view name) {
    int depth = 0;
    for (std::size_t at = name.size(); at-- > 0;) {
        depth += name[at] == '>' ? 1 : name[at] == '<' ? -1 : 0;
        if (name[at] == ':' && depth == 0) {
            return at + 1;
        }
    }
    return 0;
}

// Returns the node of a backward pass: "torch::autograd::generated::MmBackward0::apply(...)" ->
// "MmBackward0". Also for other nodes of torch::autograd ("AccumulateGrad", "CppNode<my::Op>").
// Empty for other functions.
std::string_view backward_node(std::string_view function) {
    const std::size_t end = function.find("::apply(");
    if (end == std::string_view::npos) {
        return {};
    }
    const std::string_view node = function.substr(0, end);
    const std::string_view name = node.substr(last_component(node));
    const bool is_node = contains(name, "Backward") || node.starts_with("torch::autograd::");
    return is_node ? name : std::string_view();
}

// Whether the frame belongs to the engine's work between nodes: it checks, sums and passes on
// gradients.
bool is_backward_step(const Frame& frame) {
    return frame.function.starts_with("torch::autograd::") &&
           !frame.function.starts_with("torch::autograd::VariableType::");
}

enum Trait : FrameTraits {
    kPython = 1,
    kLibraryFile = 2,
    kGenerated = 4,
    kBackwardNode = 8,
    kEngine = 16,  // runs the backward pass
    kBackwardStep = 32,
    kPlumbing = 64,
    kInterpreter = 128,
    kFramework = 256,
};

bool has(const Frame& frame, Trait trait) {
    switch (trait) {
        case kPython:
            return frame.kind == Frame::Kind::kPython;
        case kLibraryFile:
            return is_library_file(frame.file);
        case kGenerated:
            return !generator_of(frame.file).empty();
        case kBackwardNode:
            return !backward_node(frame.function).empty();
        case kEngine:
            return frame.function.starts_with("torch::autograd::Engine::");
        case kBackwardStep:
            return is_backward_step(frame);
        case kPlumbing:
            return is_plumbing(frame);
        case kInterpreter:
            return is_interpreter_module(frame) || is_evaluator_name(frame.function);
        case kFramework:
            return is_framework(frame);
    }
    return false;
}

bool has(FrameTraits traits, Trait trait) {
    return (traits & trait) != 0;
}

// Index of the most informative frame; frames.size() if there is no frame.
template <typename Frames>
std::size_t pick(const Frames& frames) {
    const std::size_t none = frames.size();
    const auto first = [&](auto accept) {
        return static_cast<std::size_t>(std::find_if(frames.begin(), frames.end(), accept) -
                                        frames.begin());
    };
    const auto is_own = [](const auto& frame) {
        return has(frame, kPython) && !has(frame, kLibraryFile);
    };
    std::size_t found =
        first([&](const auto& frame) { return is_own(frame) && !has(frame, kGenerated); });
    if (found == none) {
        found = first(is_own);
    }
    if (found == none) {
        found = first([](const auto& frame) { return has(frame, kPython); });
    }
    if (found == none) {
        found = first([](const auto& frame) { return has(frame, kBackwardNode); });
    }
    if (found == none && first([](const auto& frame) { return has(frame, kEngine); }) != none) {
        found = first([](const auto& frame) { return has(frame, kBackwardStep); });
    }
    if (found == none) {
        found = first([](const auto& frame) { return !has(frame, kPlumbing); });
    }
    // Without Python frames, the framework's outermost function describes the operation best.
    if (found == none) {
        for (std::size_t i = 0; i < none && !has(frames[i], kInterpreter); ++i) {
            found = has(frames[i], kFramework) ? i : found;
        }
    }
    return found == none ? 0 : found;  // frames.size() is 0 if there are none
}

// Removes the parameters of a function, because C++ signatures can fill a screen.
std::string_view without_parameters(std::string_view function) {
    int depth = 0;
    for (std::size_t i = 1; i < function.size(); ++i) {
        const char character = function[i];
        depth += character == '<' ? 1 : character == '>' && function[i - 1] != '-' ? -1 : 0;
        if (character == '(' && depth == 0 && function.substr(i, 21) != "(anonymous namespace)") {
            return function.substr(0, i);
        }
    }
    return function;
}

}  // namespace

bool has_stack(const Origin& origin) {
    return origin.native_stack != 0 || origin.python_stack != 0 || origin.label != 0;
}

std::string label_by_size(std::uint64_t size_bytes) {
    return "no stack: blocks of " + format_bytes(size_bytes);
}

const Frame* pick_user_frame(const std::vector<Frame>& frames) {
    return frames.empty() ? nullptr : &frames[pick(frames)];
}

FrameTraits frame_traits(const Frame& frame) {
    FrameTraits traits = 0;
    for (unsigned trait = kPython; trait <= kFramework; trait *= 2) {
        traits |= has(frame, static_cast<Trait>(trait)) ? trait : 0;
    }
    return traits;
}

std::size_t user_frame_index(const std::vector<FrameTraits>& frames) {
    return pick(frames);
}

std::string library_of(const Frame& frame) {
    const bool python = frame.kind == Frame::Kind::kPython;
    const std::string_view path = python ? frame.file : frame.module;
    if (python && !is_library_file(path)) {
        return generator_of(path).empty() ? "" : "generated code";
    }
    if (!python && !is_library_file(path) && !is_plumbing(frame)) {
        return "";
    }
    if (const std::string_view package = package_of(path); !package.empty()) {
        return std::string(package);
    }
    if (python) {
        return contains(path, "/torch/") ? "torch" : "Python's library";
    }
    const std::string_view name = base_name(path);
    if (name.starts_with("libtorch") || name.starts_with("libc10")) {
        return "torch";
    }
    return contains(name, ".so") ? std::string(name) : "native code";
}

std::string describe_frame(const Frame& frame) {
    if (frame.kind == Frame::Kind::kNative) {
        const std::string_view node = backward_node(frame.function);
        if (!node.empty()) {
            return fmt::format("{} (backward pass)", node);
        }
    }
    const std::string_view function = without_parameters(frame.function);
    if (!frame.file.empty() && frame.line == 0 && frame.kind == Frame::Kind::kNative) {
        return fmt::format("{} in {}", function, base_name(frame.file));
    }
    if (!frame.file.empty()) {
        return fmt::format("{}:{} {}", shown_file(frame.file), frame.line, function);
    }
    if (frame.module.empty() || function.starts_with(base_name(frame.module))) {
        return std::string(function);
    }
    return fmt::format("{} in {}", function, base_name(frame.module));
}

}  // namespace fragtrace::analyzer
