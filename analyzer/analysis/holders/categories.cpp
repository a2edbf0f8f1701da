#include "analyzer/analysis/holders/categories.h"

#include "analyzer/analysis/iterations/common_caller.h"
#include "analyzer/support/text.h"
#include "analyzer/trace/base_name.h"

#include <algorithm>
#include <string>

namespace fragtrace::analyzer {
namespace {

// ---- the first table: what a frame says ---------------------------------------------------------

// A rule applies if all its parts that are not empty match: a substring of the file, a substring of
// the function's name, and the start of the shared object's name.
struct FrameRule {
    std::string_view file;
    std::string_view function;
    std::string_view module;
    StackMark mark;
};

// Files of optimizers are listed in is_optimizer_file(), since finding iterations needs them too.
constexpr std::array<FrameRule, 38> kFrameRules = {{
    {"", "torch::autograd::Engine::", "", kMarkBackward},
    {"", "torch::autograd::AccumulateGrad", "", kMarkBackward},
    {"", "torch::autograd::python::PythonEngine", "", kMarkBackward},
    {"/torch/autograd/", "backward", "", kMarkBackward},
    {"/torch/autograd/", "_make_grads", "", kMarkBackward},
    {"/torch/autograd/", "grad", "", kMarkBackward},
    {"/torch/_tensor.py", "backward", "", kMarkBackward},
    {"/torch/nn/modules/", "_apply", "", kMarkModuleMade},
    {"/torch/nn/modules/", "__init__", "", kMarkModuleMade},
    {"/torch/nn/modules/", "reset_parameters", "", kMarkModuleMade},
    {"/torch/nn/modules/", "load_state_dict", "", kMarkModuleMade},
    {"/torch/nn/modules/", "_load_from_state_dict", "", kMarkModuleMade},
    {"/torch/nn/modules/", "to_empty", "", kMarkModuleMade},
    {"/torch/nn/parameter.py", "", "", kMarkModuleMade},
    {"/torch/nn/init.py", "", "", kMarkModuleMade},
    {"", "from_pretrained", "", kMarkModuleMade},
    {"/peft/", "get_peft_model", "", kMarkModuleMade},
    {"/peft/", "cast_adapter_dtype", "", kMarkModuleMade},
    {"", "load_weights", "", kMarkModuleMade},
    {"/safetensors/", "", "", kMarkModuleMade},
    {"/torch/nn/modules/module.py", "_call_impl", "", kMarkModuleCalled},
    {"/torch/nn/functional.py", "", "", kMarkModuleCalled},
    {"", "getCurrentCUDABlasHandle", "", kMarkWorkspace},
    {"", "getCUDABlasLtWorkspace", "", kMarkWorkspace},
    {"", "parseChosenWorkspaceSize", "", kMarkWorkspace},
    {"", "getNewWorkspace", "", kMarkWorkspace},
    {"", "at::native::Workspace", "", kMarkWorkspace},
    {"", "", "libcublas", kMarkLibrary},
    {"", "", "libcudnn", kMarkLibrary},
    {"", "", "libcufft", kMarkLibrary},
    {"", "", "libcurand", kMarkLibrary},
    {"", "", "libcusolver", kMarkLibrary},
    {"", "", "libcusparse", kMarkLibrary},
    {"", "", "libnccl", kMarkLibrary},
    {"", "", "libnvshmem", kMarkLibrary},
    {"", "closure", "", kMarkClosure},
    {"", "THPVariable_cuda", "", kMarkCopied},
    {"", "THPVariable_to", "", kMarkCopied},
}};

// ---- the second table: what marks and lifetimes make of a block ---------------------------------

enum class Lives : std::uint8_t {
    kAny,
    kMostlyPass,       // more blocks ended in the pass that requested them than outlived it
    kMostlyIteration,  // the same for iterations
};

// The first matching row gives the category. A row matches if the stack has one of its marks (0 =
// any stack) and the lifetime applies.
struct KindRule {
    std::uint16_t marks;
    Lives lives;
    Category category;
};

constexpr std::array<KindRule, 11> kKindRules = {{
    {kMarkLibrary, Lives::kAny, Category::kLibraries},
    {kMarkWorkspace, Lives::kAny, Category::kWorkspaces},
    {kMarkOptimizer, Lives::kMostlyPass, Category::kTemporaries},
    {kMarkOptimizer, Lives::kAny, Category::kOptimizerState},
    {kMarkBackward, Lives::kMostlyPass, Category::kTemporaries},
    {kMarkBackward, Lives::kAny, Category::kGradients},
    {kMarkModuleCalled, Lives::kAny, Category::kActivations},
    {kMarkModuleMade, Lives::kAny, Category::kParameters},
    {kMarkCopied, Lives::kAny, Category::kInputs},
    {0, Lives::kMostlyIteration, Category::kTemporaries},
    {0, Lives::kAny, Category::kOther},
}};

constexpr std::uint16_t kNotKnown = 0xffff;
constexpr unsigned kOperationMarks =
    kMarkOptimizer | kMarkBackward | kMarkModuleMade | kMarkModuleCalled | kMarkClosure;

std::uint16_t marks_of(const Frame& frame) {
    std::uint16_t marks = is_forward(frame.function) ? kMarkModuleCalled : 0;
    const std::string_view module = base_name(frame.module);
    std::string file = frame.file;
    std::replace(file.begin(), file.end(), '\\', '/');
    marks = static_cast<std::uint16_t>(marks | (is_optimizer_file(file) ? kMarkOptimizer : 0));
    for (const FrameRule& rule : kFrameRules) {
        if (contains(file, rule.file) && contains(frame.function, rule.function) &&
            (rule.module.empty() || module.starts_with(rule.module))) {
            marks = static_cast<std::uint16_t>(marks | rule.mark);
        }
    }
    return marks;
}

bool holds(Lives lives, const StackHistory& stack) {
    switch (lives) {
        case Lives::kAny:
            return true;
        case Lives::kMostlyPass:
            return stack.ended_in_pass > stack.outlived_pass;
        case Lives::kMostlyIteration:
            return stack.ended_in_iteration > stack.outlived_iteration;
    }
    return false;
}

}  // namespace

std::string_view category_name(Category category) {
    constexpr std::array<std::string_view, kCategories> kNames = {"parameters",
                                                                  "gradients",
                                                                  "optimizer state",
                                                                  "activations",
                                                                  "inputs",
                                                                  "workspaces",
                                                                  "temporaries",
                                                                  "libraries",
                                                                  "other"};
    return kNames[static_cast<std::size_t>(category)];
}

StackMarks::StackMarks(const Timeline& timeline, Symbolizer* symbols)
    : timeline_(timeline), symbols_(symbols), marks_(timeline.nodes.size(), kNotKnown) {}

std::uint16_t StackMarks::of(OriginId id) {
    if (id >= timeline_.origins.size()) {
        return 0;
    }
    const Origin& origin = timeline_.origins[id];
    return static_cast<std::uint16_t>(of_node(origin.native_stack) | of_node(origin.python_stack));
}

// Parents have smaller numbers than their children, so both loops end.
std::uint16_t StackMarks::of_node(std::uint32_t node) {
    std::vector<std::uint32_t> path;
    while (node != 0 && node < marks_.size() && marks_[node] == kNotKnown) {
        path.push_back(node);
        node = timeline_.nodes[node].parent;
    }
    unsigned marks = node == 0 || node >= marks_.size() ? 0u : marks_[node];
    for (auto above = path.rbegin(); above != path.rend(); ++above) {
        const unsigned own = of_frame(timeline_.nodes[*above]);
        // The innermost operation decides. A forward that an optimizer's closure calls is not part
        // of the optimizer's step.
        marks = (own & kOperationMarks) != 0 ? own | (marks & ~kOperationMarks) : marks | own;
        marks_[*above] = static_cast<std::uint16_t>(marks);
    }
    return static_cast<std::uint16_t>(marks);
}

std::uint16_t StackMarks::of_frame(const StackNode& node) {
    if (is_python_frame(node.frame)) {
        return marks_of(symbols_->python_frame(node));
    }
    std::uint16_t marks = 0;
    for (const Frame& frame : symbols_->native_frames(node.frame)) {
        marks = static_cast<std::uint16_t>(marks | marks_of(frame));
    }
    return marks;
}

Category category_of(const StackHistory& stack) {
    for (const KindRule& rule : kKindRules) {
        if ((rule.marks == 0 || (stack.marks & rule.marks) != 0) && holds(rule.lives, stack)) {
            return rule.category;
        }
    }
    return Category::kOther;
}

}  // namespace fragtrace::analyzer
