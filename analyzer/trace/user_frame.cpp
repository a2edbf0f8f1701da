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

// What the engine does between the nodes: to check, to sum and to hand on their gradients.
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
            return is_generated_file(frame.file);
        case kBackwardNode:
            return !backward_node(frame.function).empty();
        case kEngine:
            return frame.function.starts_with("torch::autograd::Engine::");
        case kBackwardStep:
            return is_backward_step(frame);
        case kPlumbing:
            return is_plumbing(frame);
        case kInterpreter:
            return is_interpreter_module(frame);
        case kFramework:
            return base_name(frame.module).starts_with("libtorch");
    }
    return false;
}

bool has(FrameTraits traits, Trait trait) {
    return (traits & trait) != 0;
}

// Index of the frame that tells most; frames.size() if there is none at all.
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
    // Without Python frames the framework's outermost function names the operation best.
    if (found == none) {
        for (std::size_t i = 0; i < none && !has(frames[i], kInterpreter); ++i) {
            found = has(frames[i], kFramework) ? i : found;
        }
    }
    return found == none ? 0 : found;  // of no frames 0 is the size
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
        return is_generated_file(path) ? "generated code" : "";
    }
    if (!python && !is_library_file(path) && !is_plumbing(frame)) {
        return "";
    }
    for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
        if (const std::size_t at = path.find(folder); at != std::string_view::npos) {
            const std::string_view inside = path.substr(at + folder.size());
            const std::string_view package = inside.substr(0, inside.find('/'));
            return std::string(package.ends_with(".py") ? package.substr(0, package.size() - 3)
                                                        : package);
        }
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
    if (!frame.file.empty()) {
        return fmt::format("{}:{} {}", short_path(frame.file), frame.line, function);
    }
    if (frame.module.empty() || function.starts_with(base_name(frame.module))) {
        return std::string(function);
    }
    return fmt::format("{} in {}", function, base_name(frame.module));
}

}  // namespace fragtrace::analyzer
