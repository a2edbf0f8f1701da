#include "analyzer/analysis/iterations/common_caller.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Both parts must occur: in the file's name and in the function's name.
struct Operation {
    std::string_view file;
    std::string_view function;
};

constexpr std::array<Operation, 5> kOperations = {{
    {"/torch/nn/modules/module.py", "_call_impl"},
    {"/torch/nn/modules/module.py", "_apply"},
    {"/torch/optim/", ""},
    {"/torch/autograd/", ""},
    {"", "torch::autograd::Engine::"},
}};

const PythonCode* code_of(const Timeline& timeline, const StackNode& node) {
    const std::uint32_t id = python_code_id(node.frame);
    return is_python_frame(node.frame) && id < timeline.codes.size() ? &timeline.codes[id]
                                                                     : nullptr;
}

// The closure of an optimizer computes the loss itself, so it contains a whole step of the program.
bool is_closure(const Timeline& timeline, const StackNode& node) {
    const PythonCode* code = code_of(timeline, node);
    return code != nullptr && code->function.find("closure") != std::string::npos;
}

bool is_operation(const Timeline& timeline, const StackNode& node) {
    const PythonCode* code = code_of(timeline, node);
    if (code == nullptr || is_forward(code->function)) {
        return code != nullptr;
    }
    std::string file = code->file;
    std::replace(file.begin(), file.end(), '\\', '/');
    return std::any_of(kOperations.begin(), kOperations.end(), [&](const Operation& operation) {
        return file.find(operation.file) != std::string::npos &&
               code->function.find(operation.function) != std::string::npos;
    });
}

std::uint32_t python_stack(const Timeline& timeline, OriginId origin) {
    return origin < timeline.origins.size() ? timeline.origins[origin].python_stack : 0;
}

// The deepest common ancestor of two nodes. Parents have smaller numbers than their children, so
// the loop ends. `under` marks nodes known to lie under `a`. So each node is visited once, however
// deep the stacks are.
std::uint32_t common_node(const Timeline& timeline,
                          std::uint32_t a,
                          std::uint32_t b,
                          std::vector<bool>* under) {
    while (a != b) {
        if (b < under->size() && (*under)[b]) {
            return a;
        }
        std::uint32_t& deeper = a > b ? a : b;
        if (deeper < under->size()) {
            (*under)[deeper] = true;
        }
        deeper = deeper < timeline.nodes.size() ? timeline.nodes[deeper].parent : 0;
    }
    return a;
}

constexpr std::array<std::string_view, 5> kOptimizerFiles = {"/torch/optim/",
                                                             "/bitsandbytes/optim/",
                                                             "/apex/optimizers/",
                                                             "/deepspeed/ops/",
                                                             "/transformers/optimization.py"};

}  // namespace

bool is_optimizer_file(std::string_view file) {
    return std::any_of(
        kOptimizerFiles.begin(), kOptimizerFiles.end(), [file](std::string_view part) {
            return file.find(part) != std::string_view::npos;
        });
}

bool is_optimizer_frame(const Timeline& timeline, const StackNode& node) {
    const PythonCode* code = code_of(timeline, node);
    if (code == nullptr) {
        return false;
    }
    std::string file = code->file;
    std::replace(file.begin(), file.end(), '\\', '/');
    return is_optimizer_file(file);
}

bool is_forward(std::string_view function) {
    return function == "forward" || function.ends_with(".forward");
}

bool lies_inside_an_operation(const Timeline& timeline,
                              const Requests& requests,
                              std::size_t offset,
                              const std::vector<std::uint32_t>& starts) {
    // Length and number of each stretch.
    std::vector<std::pair<std::uint32_t, std::size_t>> lengths;
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
        lengths.emplace_back(starts[i + 1] - starts[i], i);
    }
    if (lengths.empty()) {
        return false;
    }
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    bool stacks_known = false;
    std::uint32_t common = 0;
    std::vector<bool> under(timeline.nodes.size());
    for (std::uint32_t at = starts[middle->second]; at < starts[middle->second + 1]; ++at) {
        const OriginId origin = requests.origins[requests.stacks[offset + at]];
        const std::uint32_t stack = python_stack(timeline, origin);
        // Threads without Python frames are skipped: they serve a call that the program made.
        if (stack != 0) {
            common = stacks_known ? common_node(timeline, common, stack, &under) : stack;
            stacks_known = true;
        }
    }
    if (!stacks_known) {
        // The stretch is the own work of such a thread, if other requests of the program have
        // Python stacks.
        return std::any_of(requests.origins.begin(), requests.origins.end(), [&](OriginId origin) {
            return python_stack(timeline, origin) != 0;
        });
    }
    for (; common != 0 && common < timeline.nodes.size(); common = timeline.nodes[common].parent) {
        if (is_closure(timeline, timeline.nodes[common])) {
            return false;
        }
        if (is_operation(timeline, timeline.nodes[common])) {
            return true;
        }
    }
    return false;
}

}  // namespace fragtrace::analyzer
