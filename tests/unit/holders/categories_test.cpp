// The category of a block (parameters, activations, ...), for stacks written by hand.
#include "analyzer/analysis/holders/categories.h"

#include "analyzer/analysis/holders/run_history.h"
#include "tests/unit/iterations/made_up_run.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::MadeUpRun;

namespace {

struct Call {
    const char* file;
    const char* function;
};

constexpr Call kMain = {"/home/me/train.py", "main"};
constexpr Call kModuleCall = {"/site-packages/torch/nn/modules/module.py", "Module._call_impl"};
constexpr Call kStep = {"/site-packages/torch/optim/optimizer.py", "step"};
constexpr Call kClosure = {"/site-packages/lightning/loop.py", "closure"};
constexpr Call kBackward = {"/site-packages/torch/_tensor.py", "Tensor.backward"};
constexpr Call kEngine = {"engine.cpp", "torch::autograd::Engine::evaluate_function"};
constexpr Call kApply = {"/site-packages/torch/nn/modules/module.py", "Module._apply"};

// Category of a block that was never freed. Calls go from the outermost to the innermost.
Category of(const std::vector<Call>& calls, const StackHistory& lived = {}) {
    MadeUpRun run;
    std::uint32_t node = 0;
    for (const Call& call : calls) {
        node = run.frame(node, call.file, call.function);
    }
    const OriginId origin = run.origin(node);
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    StackHistory stack = lived;
    stack.marks = marks.of(origin);
    return category_of(stack);
}

constexpr StackHistory kShort = {.ended_in_pass = 9, .outlived_pass = 1};
constexpr StackHistory kLong = {.ended_in_pass = 1, .outlived_pass = 9};

}  // namespace

TEST_CASE("the category follows from the functions in the allocation's stack") {
    CHECK(of({kMain, kApply}) == Category::kParameters);
    CHECK(of({kMain, kModuleCall}) == Category::kActivations);
    CHECK(of({kMain, kStep}) == Category::kOptimizerState);
    CHECK(of({kMain, kBackward}) == Category::kGradients);
    CHECK(of({kEngine}) == Category::kGradients);
    CHECK(of({kEngine, {"", "at::cuda::getCurrentCUDABlasHandle"}}) == Category::kWorkspaces);
    CHECK(of({kMain, {"", "torch::autograd::THPVariable_cuda"}}) == Category::kInputs);
    CHECK(of({kMain, kApply, {"", "torch::autograd::THPVariable_cuda"}}) == Category::kParameters);
    CHECK(of({kMain,
              {"/site-packages/peft/mapping_func.py", "get_peft_model"},
              {"/site-packages/peft/tuners/tuners_utils.py", "cast_adapter_dtype"},
              {"", "torch::autograd::THPVariable_to"}}) == Category::kParameters);
    CHECK(of({kMain, {"/home/me/model.py", "Block.forward"}}) == Category::kActivations);
    CHECK(of({kMain, {"C:\\venv\\torch\\optim\\adam.py", "f"}}) == Category::kOptimizerState);
    CHECK(of({kMain, {"/home/me/model.py", "forward_all"}}) == Category::kOther);
    CHECK(of({kMain}) == Category::kOther);
    CHECK(of({}) == Category::kOther);
}

TEST_CASE("blocks freed within their pass are temporaries, blocks that outlive it are not") {
    CHECK(of({kEngine}, kShort) == Category::kTemporaries);
    CHECK(of({kEngine}, kLong) == Category::kGradients);
    CHECK(of({kMain, kStep}, kShort) == Category::kTemporaries);
    CHECK(of({kMain, kStep}, kLong) == Category::kOptimizerState);
    CHECK(of({kMain}, {.ended_in_iteration = 2, .outlived_iteration = 1}) ==
          Category::kTemporaries);
    CHECK(of({kMain}, {.ended_in_iteration = 1, .outlived_iteration = 1}) == Category::kOther);
}

TEST_CASE("forward and backward inside an optimizer's closure are not optimizer state") {
    CHECK(of({kMain, kStep, kClosure, kModuleCall}) == Category::kActivations);
    CHECK(of({kMain, kStep, kClosure, kBackward}) == Category::kGradients);
    CHECK(of({kMain, kStep, kClosure, kMain}) == Category::kOther);
}

TEST_CASE("every category has its own name") {
    for (std::size_t a = 0; a < kCategories; ++a) {
        CHECK_FALSE(category_name(static_cast<Category>(a)).empty());
        for (std::size_t b = 0; b < a; ++b) {
            CHECK(category_name(static_cast<Category>(a)) !=
                  category_name(static_cast<Category>(b)));
        }
    }
}

TEST_CASE("lifetimes are counted in passes and in iterations") {
    MadeUpRun run;
    const OriginId forward = run.line("forward");
    const OriginId backward = run.origin(run.frame(0, kEngine.file, kEngine.function));
    std::vector<EventIndex> gradients;
    for (int step = 0; step < 4; ++step) {
        const EventIndex activation = run.alloc(forward);
        for (const EventIndex gradient : gradients) {
            run.free(gradient);
        }
        gradients = {run.alloc(backward)};
        run.free(run.alloc(backward));
        run.free(activation);
    }
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    const RunHistory history = run_history(run.timeline, 0, true, &marks);
    REQUIRE(history.iterations.begins.size() == 4);
    const auto& of_forward = history.stacks[history.requests.stacks[0]];
    const auto& of_backward = history.stacks[history.requests.stacks[1]];
    CHECK(of_forward.ended_in_iteration == 4);
    CHECK(of_forward.outlived_pass == 4);
    CHECK(of_backward.ended_in_pass == 4);
    CHECK(of_backward.outlived_pass == 3);  // the last pass is not decided: the trace ends in it
    CHECK(of_backward.outlived_iteration == 3);
}
