// The line that is shown to the user.
#include "analyzer/trace/user_frame.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace fragtrace::analyzer;

namespace {

Frame native_frame(const std::string& function, const std::string& module) {
    return {Frame::Kind::kNative, function, {}, 0, module};
}

}  // namespace

TEST_CASE("the user's line depends on the kinds of frames in the stack", "[symbols]") {
    const std::vector<Frame> autograd = {
        native_frame("cudaMalloc", "/x/libcudart.so.12"),
        native_frame("at::empty(c10::ArrayRef<long>)", "/x/libtorch_cpu.so"),
        native_frame("torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)",
                     "/x/libtorch_cpu.so"),
        native_frame("start_thread", "/x/libc.so.6")};
    CHECK(describe_frame(*pick_user_frame(autograd)) == "MmBackward0 (backward pass)");
    const std::vector<Frame> program = {native_frame("cudaMalloc", "/x/libcudart.so.12"),
                                        native_frame("grow(Mesh<int (*)(int)>&)", "/x/simulate"),
                                        native_frame("main", "/x/simulate")};
    CHECK(describe_frame(*pick_user_frame(program)) == "grow in simulate");
    const std::vector<Frame> library = {
        {Frame::Kind::kPython, "step", "/v/site-packages/torch/optim/adam.py", 10, {}},
        {Frame::Kind::kPython, "fit", "/v/site-packages/fastai/learner.py", 20, {}}};
    CHECK(describe_frame(*pick_user_frame(library)) == "optim/adam.py:10 step");
    const std::vector<Frame> no_python_stack = {
        native_frame("at::empty(c10::ArrayRef<long>)", "/x/libtorch_cpu.so"),
        native_frame("torch::autograd::THPVariable_linear(_object*)", "/x/libtorch_python.so"),
        native_frame("cfunction_call", "/usr/bin/python3.11")};
    CHECK(describe_frame(*pick_user_frame(no_python_stack)) ==
          "torch::autograd::THPVariable_linear in libtorch_python.so");
    CHECK(pick_user_frame({}) == nullptr);
    const auto frame = [](const std::string& function, const std::string& file) {
        return Frame{Frame::Kind::kPython, function, file, 5, {}};
    };
    const Frame generated = frame("call", "/tmp/torchinductor_me/ab/cabc.py");
    const Frame traced = frame("forward", "<eval_with_key>.3");
    const Frame library_frame = frame("run", "/v/site-packages/torch/_inductor/utils.py");
    const Frame own = frame("step", "/home/me/train.py");
    const Frame cell = frame("<module>", "<ipython-input-3-0123>");
    const auto pick = [](std::vector<Frame> stack) { return pick_user_frame(stack)->function; };
    CHECK(pick({generated, traced, library_frame, own}) == "step");
    CHECK(pick({library_frame, traced, cell}) == "<module>");
    CHECK(pick({library_frame, generated}) == "call");
    const std::vector<Frame> between_nodes = {
        native_frame("at::sum_to(at::Tensor)", "/x/libtorch_cpu.so"),
        native_frame("torch::autograd::VariableType::sum(at::Tensor)", "/x/libtorch_cpu.so"),
        native_frame("torch::autograd::validate_outputs(int)", "/x/libtorch_cpu.so"),
        native_frame("torch::autograd::Engine::evaluate_function(int)", "/x/libtorch_cpu.so"),
        native_frame("torch::autograd::python::PythonEngine::thread_init(int)",
                     "/x/libtorch_python.so")};
    CHECK(describe_frame(*pick_user_frame(between_nodes)) ==
          "torch::autograd::validate_outputs in libtorch_cpu.so");
    // As snapshots of PyTorch name them: a source line, or the module instead of the file.
    const auto in_source = [](const std::string& function, const std::string& file) {
        return Frame{Frame::Kind::kNative, function, file, 40, {}};
    };
    const Frame start = native_frame("_start", "/x/simulate");
    CHECK(pick({in_source("c10::alloc(int)", "/pytorch/c10/cuda/x.cpp"),
                in_source("std::vector<int>::reserve(int)", "/usr/include/c++/12/bits/vector.tcc"),
                in_source("grow(int)", "/home/me/simulate.cpp"),
                start}) == "grow(int)");
    CHECK(pick({in_source("at::empty(int)", "/pytorch/aten/x.cpp"), start}) == "_start");
    const auto describe = [](const std::string& function) {
        return describe_frame(native_frame(function, "/x/libtorch_cpu.so"));
    };
    CHECK(describe("at::(anonymous namespace)::wrapper(at::Tensor)") ==
          "at::(anonymous namespace)::wrapper in libtorch_cpu.so");
    CHECK(describe("wrap<at::Tensor (int), f>::call(int)") ==
          "wrap<at::Tensor (int), f>::call in libtorch_cpu.so");
    CHECK(describe("A::operator->(int)") == "A::operator-> in libtorch_cpu.so");
    CHECK(describe("torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)") ==
          "AccumulateGrad (backward pass)");
    CHECK(describe("torch::autograd::CppNode<my::Op>::apply(std::vector<at::Tensor>&&)") ==
          "CppNode<my::Op> (backward pass)");
    CHECK(describe("my::Filter::apply(int)") == "my::Filter::apply in libtorch_cpu.so");
}
