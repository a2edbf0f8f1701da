// The kind of a file, from its path: a library, generated code, native code, or the user's own.
#include "analyzer/trace/code_files.h"

#include "analyzer/trace/symbols.h"
#include "analyzer/trace/user_frame.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace fragtrace::analyzer {
namespace {

Frame python_frame(const std::string& file) {
    return {Frame::Kind::kPython, "step", file, 5, {}};
}

const std::string kHash = "cabcd2efghijklmnopqrstuvwxyz234567abcdefghijklmnopqr";

TEST_CASE("library paths are recognised on every system", "[user-line]") {
    for (const char* file : {"/v/lib/python3.11/site-packages/torch/nn/modules/linear.py",
                             "/usr/lib/python3/dist-packages/numpy/core.py",
                             "/usr/lib/python3.11/runpy.py",
                             "C:\\venv\\Lib\\site-packages\\torch\\nn\\modules\\module.py",
                             "C:\\research\\.venv\\lib\\site-packages\\transformers\\trainer.py",
                             "C:\\Program Files\\Python311\\Lib\\runpy.py",
                             "D:\\miniconda3\\envs\\a\\lib\\threading.py",
                             "<frozen runpy>"}) {
        INFO(file);
        CHECK(is_library_file(file));
    }
    for (const char* file : {"C:\\research\\DeComFL\\decomfl_main.py",
                             "C:\\me\\lib\\net.py",
                             "/home/me/lib/net.py",
                             "train.py",
                             "<stdin>"}) {
        INFO(file);
        CHECK_FALSE(is_library_file(file));
    }
    CHECK(package_of("C:\\v\\lib\\site-packages\\torch\\nn\\x.py") == "torch");
    CHECK(package_of("/v/site-packages/six.py") == "six");
    CHECK(package_of("/home/me/train.py").empty());
}

TEST_CASE("a generated file is named after its generator", "[user-line]") {
    const std::vector<std::pair<std::string, std::string>> files = {
        {"/tmp/torchinductor_me/ab/" + kHash + ".py", "torch.compile"},
        {"/scratch/cache/ab/" + kHash + ".py", "torch.compile"},  // TORCHINDUCTOR_CACHE_DIR
        {"C:\\Temp\\torchinductor_me\\ab\\" + kHash + ".py", "torch.compile"},
        {"/tmp/torchinductor_me/triton/0/ABC/launcher.py", "triton"},
        {"/root/.triton/cache/ABC/__triton_launcher.py", "triton"},
        {"<eval_with_key>.12", "torch.fx"},
        {"<string>", "exec"},
        {"<attrs generated init A>", "attrs"},
        {"/tmp/torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_arzwis6z.py", "torch_geometric"},
        {"/tmp/__main___Conv_propagate_1b_9zkq3.py", "torch_geometric"},
        {"/tmp/layers_Conv_edge_updater_1b_9zkq3.py", "torch_geometric"},
        {"/tmp/tmpab12_xyz.py", "a temporary file"}};
    for (const auto& [file, generator] : files) {
        INFO(file);
        CHECK(generator_of(file) == generator);
        CHECK(shown_file(file).starts_with(generator));
    }
    for (const char* file : {"/tmp/tmpab12cd34/train.py",
                             "/home/me/train.py",
                             "/home/me/train_finetune.py",
                             "/home/me/label_propagate.py",
                             "<stdin>",
                             "<ipython-input-3-0123>",
                             "/tmp/ipykernel_123/456789.py",
                             "/v/site-packages/ipykernel_launcher.py",
                             "/v/site-packages/triton/runtime/cache.py"}) {
        INFO(file);
        CHECK(generator_of(file).empty());
    }
}

TEST_CASE("names of lines contain no random parts", "[user-line]") {
    CHECK(describe_frame(python_frame("/tmp/ipykernel_123/456789.py")) ==
          "notebook cell 456789:5 step");
    CHECK(describe_frame(python_frame("/tmp/ipython-input-3-98765.py")) ==
          "notebook cell 3-98765:5 step");
    CHECK(describe_frame(python_frame("/tmp/torchinductor_a/ab/" + kHash + ".py")) ==
          "torch.compile (cabcd2):5 step");
    CHECK(describe_frame(python_frame("/tmp/tmpab12_xyz.py")) == "a temporary file:5 step");
    CHECK(describe_frame(python_frame("C:\\research\\main.py")) == "research\\main.py:5 step");
    CHECK(describe_frame(python_frame("/home/me/model/net.py")) == "model/net.py:5 step");
}

TEST_CASE("a line in a PyTorch Geometric layer counts as its caller's", "[user-line]") {
    const Frame generated =
        python_frame("/tmp/torch_geometric.nn.conv.gcn_conv_X_propagate_arzwis6z.py");
    const Frame library = python_frame("/v/site-packages/torch_geometric/nn/conv/gcn_conv.py");
    const Frame own = python_frame("/home/me/graphs.py");
    CHECK(pick_user_frame({library, generated, library, own})->file == own.file);
}

TEST_CASE("code typed into a notebook is the user's own", "[user-line]") {
    const Frame cell = python_frame("/tmp/ipykernel_123/456789.py");
    const Frame library = python_frame("C:\\v\\site-packages\\torch\\x.py");
    const Frame generated = python_frame("/tmp/torchinductor_a/ab/" + kHash + ".py");
    CHECK(pick_user_frame({library, generated, cell})->file == cell.file);
    CHECK(library_of(library) == "torch");
    CHECK(library_of(generated) == "generated code");
    CHECK(library_of(cell).empty());
}

TEST_CASE("native and Python frames are distinguished by file and name", "[user-line]") {
    CHECK(is_native_frame("??", "/usr/bin/render"));
    CHECK(is_native_frame("Py_RunMain", "/usr/bin/python3.11"));
    CHECK(is_native_frame("execute_native_thread_routine", "thread48.o"));
    CHECK(is_native_frame("main", ""));
    CHECK(is_native_frame("c10::cuda::malloc", "x"));
    CHECK(is_native_frame("run_mod", "/build/Python/pythonrun.c"));
    CHECK(is_native_frame("__libc_start_main", "/lib/x86_64-linux-gnu/libc.so.6"));
    CHECK_FALSE(is_native_frame("<lambda>", "/home/me/train.py"));
    CHECK_FALSE(is_native_frame("main", "/usr/local/bin/torchrun"));
    CHECK_FALSE(is_native_frame("main.<locals>.<listcomp>", "<stdin>"));
    CHECK_FALSE(is_native_frame("step", "/home/me/python_train"));
}

}  // namespace
}  // namespace fragtrace::analyzer
