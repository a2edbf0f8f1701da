// Other batches from two made-up runs: sizes fitted by stack and number, the largest batch that
// fits.
#include "analyzer/compare/batch.h"

#include "analyzer/pools/registry.h"
#include "analyzer/trace/reader.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kBase = 0x200000000000;

// A model of 40 MiB, and activations of 12 MiB per item that are freed at the end; `extra` requests
// of 2 MiB that the run with the other batch may not have.
class Run {
  public:
    Run(const TemporaryFolder& folder, std::uint64_t batch, int extra = 0) {
        TraceWriter trace;
        trace.fact("torch_version", "2.15.0");
        std::uint64_t at = kBase;
        const auto take = [&](const char* function, std::uint64_t bytes) {
            trace.set_python_stack(trace.python_node(0, trace.code(function, "train.py", 1), 7));
            trace.device_alloc(at, bytes, true);
            trace.block_alloc(at, bytes, bytes);
            at += bytes;
            return at - bytes;
        };
        take("model", 40 * kMiB);
        const std::uint64_t activation = take("forward", 12 * kMiB * batch);
        for (int i = 0; i < extra; ++i) {
            take("search", 2 * kMiB);
        }
        trace.block_free(activation, 12 * kMiB * batch);
        trace.end(EndReason::kNormal);
        trace.footer();
        const std::string path = folder.file(std::to_string(batch) + ".ftrace");
        trace.save(path);
        auto read = read_trace(path);
        REQUIRE(read.ok());
        timeline_ = std::make_unique<Timeline>(std::move(read).value());
        symbols_ = std::make_unique<Symbolizer>(*timeline_);
        script_ = make_script(*timeline_, 0);
        run = {batch, timeline_.get(), symbols_.get(), &script_, 40 * kMiB + 12 * kMiB * batch};
    }

    BatchRun run;

  private:
    std::unique_ptr<Timeline> timeline_;
    std::unique_ptr<Symbolizer> symbols_;
    ReplayScript script_;
};

Result<BatchPrediction> predict(const Run& a, const Run& b, std::uint64_t capacity_bytes) {
    const MakePool make = [&](std::uint64_t bytes) {
        const std::uint64_t capacity = bytes == 0 ? std::uint64_t{1} << 50 : bytes;
        return make_pool("pytorch",
                         "",
                         std::make_unique<FixedDevice>(capacity, capacity, 2 * kMiB),
                         a.run.script->streams,
                         a.run.script->rules);
    };
    return predict_batches(a.run, b.run, {3, 10}, capacity_bytes, make);
}

}  // namespace

TEST_CASE("sizes that grow with the batch are told from those that do not") {
    TemporaryFolder folder;
    const Run two(folder, 2);
    const Run four(folder, 4);
    const auto told = predict(two, four, 1000 * kMiB);
    REQUIRE(told.ok());
    CHECK(told->requests == 2);
    CHECK(told->fitted_requests == 2);
    CHECK(told->sum.fixed_bytes == Approx(40.0 * kMiB));
    CHECK(told->sum.bytes_per_item == Approx(12.0 * kMiB));
    REQUIRE(told->lines.size() == 2);
    CHECK(told->lines[0].label == "train.py:7 forward");
    REQUIRE(told->rows.size() == 4);
    for (const BatchRow& row : told->rows) {
        CHECK(row.peak_reserved == (40 + 12 * row.batch) * kMiB);
        CHECK(row.recorded_reserved.has_value() == (row.batch == 2 || row.batch == 4));
        CHECK(row.ooms == 0);
    }
    // 40 + 12 n <= 1000
    CHECK(told->largest == 80);
    CHECK(told->least_failing == 81);
    // The order in which the two are given does not matter.
    CHECK(predict(four, two, 1000 * kMiB)->largest == 80);
}

TEST_CASE("requests that only one run makes keep their size and are counted") {
    TemporaryFolder folder;
    const Run two(folder, 2);
    const Run four(folder, 4, 3);
    const auto told = predict(two, four, 1000 * kMiB);
    REQUIRE(told.ok());
    CHECK(told->requests == 5);
    CHECK(told->fitted_requests == 2);
    // PyTorch's pool takes a segment of 20 MiB for the three of 2 MiB.
    CHECK(told->rows.back().peak_reserved == (40 + 120 + 20) * kMiB);
}

TEST_CASE("a card that holds no batch, and batches that say nothing") {
    TemporaryFolder folder;
    const Run two(folder, 2);
    const Run four(folder, 4);
    const auto told = predict(two, four, 45 * kMiB);
    REQUIRE(told.ok());
    CHECK_FALSE(told->largest);
    CHECK(told->least_failing == 1);
    CHECK(told->rows.front().ooms == 1);
    CHECK(predict(two, two, 45 * kMiB).error().code == ErrorCode::kUsage);
}
