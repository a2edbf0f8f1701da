// Which frame of a stack tells the user where they are in their own program, and how it is named.
#include "analyzer/trace/base_name.h"
#include "analyzer/trace/symbols.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// Python files that belong to a library: installed packages, the standard library, PyTorch itself
// where it is used from a source tree.
bool is_library_file(std::string_view file) {
    constexpr std::array<std::string_view, 12> kParts = {"/site-packages/",
                                                         "/dist-packages/",
                                                         "/lib/python3",
                                                         "/torch/nn/",
                                                         "/torch/optim/",
                                                         "/torch/utils/",
                                                         "/torch/autograd/",
                                                         "/torch/cuda/",
                                                         "/torch/distributed/",
                                                         "/torch/amp/",
                                                         "/torch/_",
                                                         "/torch/functional.py"};
    return file.starts_with("<frozen ") ||
           std::any_of(kParts.begin(), kParts.end(), [file](std::string_view part) {
               return contains(file, part);
           });
}

// Python code that no file of the user holds: made by exec, by torch.fx, by torch.compile. What is
// typed at a prompt or into a notebook's cell is the user's own.
bool is_generated_file(std::string_view file) {
    if (file.starts_with('<')) {
        return !file.starts_with("<stdin>") && !file.starts_with("<ipython-input") &&
               !file.starts_with("<python-input");
    }
    return contains(file, "/torchinductor_") || contains(file, "/torch_compile_debug/");
}

bool is_interpreter_module(const Frame& frame) {
    const std::string_view name = base_name(frame.module);
    return name.starts_with("python") || name.starts_with("libpython");
}

// Without Python frames the framework's outermost function names the operation best.
const Frame* outermost_operation(const std::vector<Frame>& frames) {
    const Frame* found = nullptr;
    for (const Frame& frame : frames) {
        if (is_interpreter_module(frame)) {
            break;
        }
        if (base_name(frame.module).starts_with("libtorch")) {
            found = &frame;
        }
    }
    return found;
}

// Modules whose functions only pass on what somebody else asked for.
bool is_plumbing(const Frame& frame) {
    constexpr std::array<std::string_view, 20> kNames = {
        "libfragtrace", "libcuda.",  "libcudart",   "libcublas",   "libcudnn",
        "libcufft",     "libcurand", "libcusolver", "libcusparse", "libnccl",
        "libnv",        "libc10",    "libtorch",    "libc.so",     "libc-",
        "libpthread",   "libstdc++", "libgcc_s",    "ld-linux",    "libdl"};
    const std::string_view name = base_name(frame.module);
    return name.empty() || is_interpreter_module(frame) ||
           std::any_of(kNames.begin(), kNames.end(), [name](std::string_view part) {
               return name.starts_with(part);
           });
}

// Where the last component of a qualified name begins, template arguments included.
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

// "torch::autograd::generated::MmBackward0::apply(...)" -> "MmBackward0", also for other nodes of
// torch::autograd ("AccumulateGrad", "CppNode<my::Op>"); else empty.
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

constexpr std::string_view kEngine = "torch::autograd::Engine::";

bool runs_backward(const std::vector<Frame>& frames) {
    return std::any_of(frames.begin(), frames.end(), [](const Frame& frame) {
        return frame.function.starts_with(kEngine);
    });
}

// What the engine does between the nodes: to check, to sum and to hand on their gradients.
bool is_backward_step(const Frame& frame) {
    return frame.function.starts_with("torch::autograd::") &&
           !frame.function.starts_with("torch::autograd::VariableType::");
}

template <typename Accept>
const Frame* first(const std::vector<Frame>& frames, Accept accept) {
    const auto found = std::find_if(frames.begin(), frames.end(), accept);
    return found == frames.end() ? nullptr : &*found;
}

// The last two components say enough in a line of a table.
std::string_view short_path(std::string_view path) {
    const std::size_t last = path.rfind('/');
    if (last == std::string_view::npos || last == 0) {
        return path;
    }
    const std::size_t before = path.rfind('/', last - 1);
    return before == std::string_view::npos ? path : path.substr(before + 1);
}

// A function without its parameters: C++ signatures can fill a screen.
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

const Frame* pick_user_frame(const std::vector<Frame>& frames) {
    const auto is_python = [](const Frame& frame) { return frame.kind == Frame::Kind::kPython; };
    const auto is_own = [&](const Frame& candidate) {
        return is_python(candidate) && !is_library_file(candidate.file);
    };
    const Frame* frame = first(frames, [&](const Frame& candidate) {
        return is_own(candidate) && !is_generated_file(candidate.file);
    });
    if (frame == nullptr) {
        frame = first(frames, is_own);
    }
    if (frame == nullptr) {
        frame = first(frames, is_python);
    }
    if (frame == nullptr) {
        frame = first(frames, [](const Frame& candidate) {
            return !backward_node(candidate.function).empty();
        });
    }
    if (frame == nullptr && runs_backward(frames)) {
        frame = first(frames, is_backward_step);
    }
    if (frame == nullptr) {
        frame = first(frames, [](const Frame& candidate) { return !is_plumbing(candidate); });
    }
    if (frame == nullptr) {
        frame = outermost_operation(frames);
    }
    return frame == nullptr && !frames.empty() ? &frames.front() : frame;
}

std::string describe_frame(const Frame& frame) {
    if (frame.kind == Frame::Kind::kNative) {
        const std::string_view node = backward_node(frame.function);
        if (!node.empty()) {
            return fmt::format("{} (backward pass)", node);
        }
    }
    const std::string_view function = without_parameters(frame.function);
    if (!frame.file.empty()) {
        return fmt::format("{}:{} {}", short_path(frame.file), frame.line, function);
    }
    if (frame.module.empty() || function.starts_with(base_name(frame.module))) {
        return std::string(function);
    }
    return fmt::format("{} in {}", function, base_name(frame.module));
}

}  // namespace fragtrace::analyzer
