// Other contents of a snapshot: the user's line, labels of blocks, pinned memory, and unknown
// entries.
#include "analyzer/support/units.h"
#include "tests/unit/snapshot/snapshot_file.h"

#include <algorithm>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::report_of;
using fragtrace::testing::SnapshotWriter;
using fragtrace::testing::text_of;

namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;

using Frames = std::vector<SnapshotWriter::Frame>;

SnapshotWriter one_block(const Frames& frames) {
    SnapshotWriter writer;
    writer.segments = {
        {.address = kBase, .blocks = {{8 * kMiB, "active_allocated", 8 * kMiB}, {12 * kMiB}}}};
    writer.entries = {{"segment_alloc", kBase, 20 * kMiB}, {"alloc", kBase, 8 * kMiB}};
    writer.entries[1].frames = frames;
    return writer;
}

std::string holder_of(const SnapshotWriter& writer) {
    const auto analysis = report_of(writer);
    return analysis->devices.at(0).held.holders.at(0).places.at(0).held.label;
}

bool warns(const Analysis& analysis, const std::string& part) {
    return std::any_of(
        analysis.warnings.begin(), analysis.warnings.end(), [&part](const std::string& line) {
            return line.find(part) != std::string::npos;
        });
}

}  // namespace

TEST_CASE("native frames of a snapshot are not taken as the user's line", "[snapshot]") {
    const std::string packages = "/opt/venv/lib/python3.11/site-packages/torch/";
    const SnapshotWriter::Frame own = {"build", "/home/me/train.py", 10};
    // As PyTorch writes them with stacks="all": libraries and executables with offsets, and
    CHECK(holder_of(one_block({{"torch::unwind::unwind()", packages + "lib/libtorch_cpu.so", 108},
                               {"??", packages + "lib/libc10_cuda.so", 319562},
                               {"??", "/usr/bin/python3.11", 5536661},
                               {"PyObject_Vectorcall", "/usr/bin/python3.11", 5483707},
                               {"_apply", packages + "nn/modules/module.py", 966},
                               {"_start", "/usr/bin/python3.11", 6454224},
                               own})) == "me/train.py:10 build");
    // or, with the slower symbolizer, source files that are often unknown.
    CHECK(holder_of(one_block({{"c10::cuda::Allocator::malloc(void**)", "", 0},
                               {"at::empty(c10::ArrayRef<long>)", "??", 0},
                               {"gather_with_cpp", "memory_snapshot.cpp", 0},
                               {"_PyEval_EvalFrameDefault", "/build/Python/bytecodes.c", 413},
                               own})) == "me/train.py:10 build");
    // A program that embeds Python can have any name.
    CHECK(holder_of(one_block({{"??", "/opt/render/bin/render", 11},
                               {"main", "/opt/render/bin/render", 12},
                               own})) == "me/train.py:10 build");
}

TEST_CASE("without Python frames the holder is the backward node or the operation", "[snapshot]") {
    CHECK(holder_of(one_block(
              {{"torch::unwind::unwind()", "??", 0},
               {"at::empty(c10::ArrayRef<long>)", "??", 0},
               {"torch::autograd::generated::MmBackward0::apply(int)", "Functions.cpp", 0},
               {"torch::autograd::Engine::thread_main()", "??", 0}})) ==
          "MmBackward0 (backward pass)");
    CHECK(holder_of(one_block({{"torch::unwind::unwind()", "??", 0},
                               {"at::_ops::empty::call(int)", "??", 0},
                               {"_PyEval_EvalFrameDefault", "??", 0}})) == "at::_ops::empty::call");
}

TEST_CASE("entries without stacks use the stacks of the state at the end", "[snapshot]") {
    SnapshotWriter writer = one_block({});
    writer.entries[1].frames = {{"other", "other.py", 3}};
    CHECK(holder_of(writer) == "other.py:3 other");
    // context="state": the entries have no stacks. The block at the end belongs to the alloc entry.
    SnapshotWriter without = writer;
    without.entries_with_stacks = false;
    CHECK(holder_of(without) == "train.py:7 step");
}

TEST_CASE("a block's user label is shown after its line", "[snapshot]") {
    SnapshotWriter writer = one_block({});
    writer.with_labels = true;
    writer.entries[1].label = "weights";
    CHECK(holder_of(writer) == "train.py:7 step \"weights\"");
    SECTION("annotations of a live block are appended") {
        writer.entries.push_back({"annotate", kBase, 8 * kMiB, 0, "x.py", "kv cache"});
        writer.entries.push_back({"annotate", kBase, 8 * kMiB, 0, "x.py", "layer 0"});
        CHECK(holder_of(writer) == "train.py:7 step \"weights; kv cache; layer 0\"");
    }
    SECTION("a block from before the history has labels too") {
        writer.entries = {{"annotate", kBase, 8 * kMiB, 0, "x.py", "kv cache"}};
        CHECK(holder_of(writer) == "train.py:7 step \"kv cache\"");
    }
}

TEST_CASE("pinned memory has its own sums", "[snapshot]") {
    SnapshotWriter writer = one_block({});
    writer.host_segments = {{.address = 0x1000, .blocks = {{8 * kMiB, "active_allocated", 1}}},
                            {.address = 0x9000000, .blocks = {{2 * kMiB, "inactive", 0}}}};
    writer.host_entries = {{"segment_alloc", 0x1000, 8 * kMiB, 0, "loader.py"},
                           {"alloc", 0x1000, 8 * kMiB, 0, "loader.py"},
                           {"segment_free", 0x5000000, 4 * kMiB, 0, "loader.py"}};
    const auto analysis = report_of(writer);
    const SideMemory& pinned = analysis->run.pinned;
    CHECK(pinned.peak_bytes == 14 * kMiB);  // 2 and 4 MiB were allocated before
    CHECK(text_of(*analysis).find("pinned") != std::string::npos);
    CHECK(analysis->devices.size() == 1);
    CHECK(analysis->devices[0].recorded.peak_reserved == 20 * kMiB);
}

TEST_CASE("the release follows from the newest feature in the snapshot", "[snapshot]") {
    SnapshotWriter writer = one_block({});
    writer.of_registration = false;
    writer.with_labels = true;
    CHECK(report_of(writer)->timeline.fact("torch_version") == "2.10 or later");
    writer.entries.push_back({"annotate", kBase, 8 * kMiB, 0, "x.py", "kv cache"});
    CHECK(report_of(writer)->timeline.fact("torch_version") == "2.14 or later");
}

TEST_CASE("entries that no known release writes are counted and reported", "[snapshot]") {
    SnapshotWriter writer = one_block({});
    writer.entries.push_back({"defragment", kBase, 8 * kMiB});
    writer.unknown_key = "numa_node";
    const auto analysis = report_of(writer);
    CHECK(warns(*analysis, "entries of no known release are left out: 'defragment' 1"));
    CHECK(warns(*analysis, "keys of no known release are left out: 'numa_node' 3"));
    CHECK(analysis->devices.at(0).fidelity->exact());
}
