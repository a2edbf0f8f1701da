// Predictions for other batch sizes from two made-up runs: sizes are fitted by stack and number,
// and the largest batch that fits is found.
#include "analyzer/analysis/compare/batch.h"

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/report/compare_report.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/reader.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

namespace {

constexpr std::uint64_t kBase = 0x200000000000;

// A model of 40 MiB, and activations of 12 MiB per item that are freed at the end. `extra` requests
// of 2 MiB may be missing from the run with the other batch.
class Run {
  public:
    Run(const TemporaryFolder& folder,
        std::uint64_t batch,
        int extra = 0,
        std::uint64_t item_bytes = 12 * kMiB) {
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
        const std::uint64_t activation = take("forward", item_bytes * batch);
        for (int i = 0; i < extra; ++i) {
            take("search", 2 * kMiB);
        }
        trace.block_free(activation, item_bytes * batch);
        trace.end(EndReason::kNormal);
        trace.footer();
        const std::string path = folder.file(std::to_string(batch) + ".ftrace");
        trace.save(path);
        auto read = read_trace(path);
        REQUIRE(read.ok());
        timeline_ = std::make_unique<Timeline>(std::move(read).value());
        symbols_ = std::make_unique<Symbolizer>(*timeline_);
        script_ = make_script(*timeline_, 0);
        run = {batch, timeline_.get(), symbols_.get(), &script_, 40 * kMiB + item_bytes * batch};
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

TEST_CASE("no batch is said to fail if the largest one that can be tried fits") {
    TemporaryFolder folder;
    const Run one(folder, 1, 0, 512);
    const Run two(folder, 2, 0, 512);
    const auto told = predict(one, two, std::uint64_t{1} << 40);
    REQUIRE(told.ok());
    REQUIRE(told->largest);
    CHECK_FALSE(told->least_failing);
    CHECK(batch_text(*told, Terminal(1, ColorChoice::kNever))
              .starts_with("Every tested batch up to "));
}

TEST_CASE("sizes that grow with the batch are distinguished from constant ones") {
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
        CHECK(row.unlimited.peak_reserved == (40 + 12 * row.batch) * kMiB);
        CHECK(row.recorded_reserved.has_value() == (row.batch == 2 || row.batch == 4));
        CHECK(row.on_card.ooms == 0);
    }
    // 40 + 12 n <= 1000
    CHECK(told->largest == 80);
    CHECK(told->least_failing == 81);
    // The order in which the two runs are given does not matter.
    CHECK(predict(four, two, 1000 * kMiB)->largest == 80);
}

TEST_CASE("requests made by only one run keep their size and are counted") {
    TemporaryFolder folder;
    const Run two(folder, 2);
    const Run four(folder, 4, 3);
    const auto told = predict(two, four, 1000 * kMiB);
    REQUIRE(told.ok());
    CHECK(told->requests == 5);
    CHECK(told->fitted_requests == 2);
    // PyTorch's pool allocates a segment of 20 MiB for the three requests of 2 MiB.
    CHECK(told->rows.back().unlimited.peak_reserved == (40 + 120 + 20) * kMiB);
}

TEST_CASE("a card too small for any batch has no largest, equal batches are refused") {
    TemporaryFolder folder;
    const Run two(folder, 2);
    const Run four(folder, 4);
    const auto told = predict(two, four, 45 * kMiB);
    REQUIRE(told.ok());
    CHECK_FALSE(told->largest);
    CHECK(told->least_failing == 1);
    CHECK(told->rows.front().on_card.ooms == 1);
    CHECK(predict(two, two, 45 * kMiB).error().code == ErrorCode::kUsage);
}

namespace {

// A pool that serves only some batches: those whose largest request (12 MiB for each item) is in
// the list.
class PickyPool final : public Pool {
  public:
    explicit PickyPool(std::vector<std::uint64_t> batches) : batches_(std::move(batches)) {}

    [[nodiscard]] std::string_view name() const override { return "picky"; }

    [[nodiscard]] std::string config() const override { return {}; }

    AllocateResult allocate(const Request& request) override {
        const std::uint64_t batch = request.requested_bytes / (12 * kMiB);
        const bool activation = request.requested_bytes % (12 * kMiB) == 0;
        if (activation && std::find(batches_.begin(), batches_.end(), batch) == batches_.end()) {
            ++statistics_.ooms;
            return {Outcome::kOutOfMemory, {}};
        }
        return {Outcome::kHit, {}};
    }

    bool release(BlockId, const std::vector<PendingOn>&) override { return true; }

    bool adopt(const HeapSnapshot&) override { return true; }

    [[nodiscard]] const PoolStatistics& statistics() const override { return statistics_; }

    [[nodiscard]] std::optional<Placement> find(BlockId) const override { return std::nullopt; }

    [[nodiscard]] HeapSnapshot snapshot() const override { return {}; }

    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t bytes) const override { return bytes; }

    std::vector<DriverCall> take_driver_calls() override { return {}; }

    [[nodiscard]] Device& device() override { return device_; }

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<PickyPool>(*this);
    }

  private:
    std::vector<std::uint64_t> batches_;
    PoolStatistics statistics_;
    FixedDevice device_{1, 1, 1};
};

BatchPrediction predict_picky(const std::vector<std::uint64_t>& batches,
                              std::uint64_t capacity_bytes) {
    TemporaryFolder folder;
    const Run two(folder, 2);
    const Run four(folder, 4);
    const MakePool make = [&](std::uint64_t) {
        return Result<std::unique_ptr<Pool>>(std::make_unique<PickyPool>(batches));
    };
    auto told = predict_batches(two.run, four.run, {}, capacity_bytes, make);
    REQUIRE(told.ok());
    return *told;
}

}  // namespace

TEST_CASE("the largest batch is found although a smaller one does not fit") {
    const BatchPrediction near = predict_picky({1, 2, 3, 4, 5, 9}, 400 * kMiB);
    CHECK(near.largest == 9);
    CHECK(near.least_failing == 10);
    CHECK(near.fails_below == 8);
    const BatchPrediction plain = predict_picky({1, 2, 3, 4, 5}, 400 * kMiB);
    CHECK(plain.largest == 5);
    CHECK(plain.least_failing == 6);
    CHECK_FALSE(plain.fails_below);
    // A recorded batch fits, even if smaller ones fail.
    const BatchPrediction recorded = predict_picky({4}, 400 * kMiB);
    CHECK(recorded.largest == 4);
    CHECK(recorded.fails_below == 3);
}

TEST_CASE("with too many batches to try each, the search also tries the neighbours") {
    // More than 3000 batches are possible. Batches up to 2001 fit, except 1990 to 1995.
    std::vector<std::uint64_t> batches;
    for (std::uint64_t batch = 1; batch <= 2001; ++batch) {
        if (batch < 1990 || batch > 1995) {
            batches.push_back(batch);
        }
    }
    const BatchPrediction told = predict_picky(batches, (40 + 12 * 3000) * kMiB);
    REQUIRE(told.largest);
    CHECK(std::find(batches.begin(), batches.end(), *told.largest) != batches.end());
    CHECK(told.least_failing == std::optional(*told.largest + 1));
    CHECK((*told.largest == 2001 || *told.largest == 1989));
    CHECK(told.replays < 300);
}
