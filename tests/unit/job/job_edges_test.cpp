// The view of a job at its edges: equal times, other generations, devices of one process, cards
// whose processes do not meet, and what a trace adds to a shared card.
#include "analyzer/analysis/job/card_moments.h"
#include "analyzer/analysis/job/job_view.h"
#include "analyzer/analysis/job/several_jobs.h"
#include "tests/support/trace_writer.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <optional>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// Two processes of one card, in this order.
Job on_one_card(ProcessSummary first, ProcessSummary second) {
    Job job;
    for (ProcessSummary* process : {&first, &second}) {
        process->devices[0].uuid = "GPU-shared";
        job.processes.push_back(std::move(*process));
    }
    return job;
}

// Two ranks of different groups that were replayed, with a setting "A" and the recorded one.
std::vector<ProcessSummary> replayed_ranks(std::uint64_t recorded_ooms) {
    std::vector<ProcessSummary> made = {rank_of(0), rank_of(1, 6 * kGiB)};
    for (ProcessSummary& process : made) {
        process.replayed = true;
        process.devices[0].settings = {replay("A", 0, kGiB),
                                       replay("default settings", recorded_ooms, 6 * kGiB)};
        process.devices[0].settings[1].recorded = true;
    }
    return made;
}

}  // namespace

TEST_CASE("a line that a complete list does not have differs by all of its bytes") {
    std::vector<ProcessSummary> made = ranks(3);
    made[2] = rank_of(2, 4 * kGiB);
    made[2].devices[0].holders.push_back({"train.py:99 extra", 500 * kMiB, 1});
    made[2].devices[0].holders[1].bytes = made[0].devices[0].holders[1].bytes;
    for (ProcessSummary& process : made) {
        process.devices[0].all_holders = true;
    }
    const GroupDifference difference = view_of(job_of(made)).differences.at(0);
    REQUIRE(difference.lines.size() == 1);
    CHECK(difference.lines[0].bytes == static_cast<std::int64_t>(500 * kMiB));
    CHECK_FALSE(difference.lines[0].at_least);
}

TEST_CASE("a card that the pool could use completely is as large as its memory") {
    std::vector<ProcessSummary> made = ranks(2);
    for (ProcessSummary& process : made) {
        process.devices[0].capacity_bytes = process.devices[0].total_bytes;
    }
    const auto card = view_of(job_of(made)).card;
    REQUIRE(card);
    CHECK(card->enough_bytes == 2 * kGiB);
}

TEST_CASE("a replay that could not be used makes no card enough") {
    std::vector<ProcessSummary> made = ranks(1);
    made[0].replayed = true;
    fail(&made[0], 5 * kSecond);
    for (const std::uint64_t gib : {4, 8}) {
        ReplaySummary row = replay(std::to_string(gib), 0, kGiB);
        row.total_bytes = gib * kGiB;
        row.usable = gib == 8;
        made[0].devices[0].cards.push_back(row);
    }
    const auto card = view_of(job_of(made)).card;
    REQUIRE(card);
    CHECK(card->replayed_bytes == 8 * kGiB);
}

TEST_CASE("a setting fits the rest of a step only if it does on every device") {
    for (const bool first_fits : {false, true}) {
        std::vector<ProcessSummary> made = replayed_ranks(1);
        for (int rank = 0; rank < 2; ++rank) {
            fail(&made[rank], 5 * kSecond);
            ReplaySummary& row = made[rank].devices[0].settings[0];
            row.gets_past = true;
            row.rest_fits = first_fits == (rank == 0);
        }
        const auto setting = view_of(job_of(made)).setting;
        REQUIRE(setting);
        CHECK(setting->rest_fits == false);
    }
}

TEST_CASE("a setting under which one device fails as often helps nobody") {
    std::vector<ProcessSummary> made = replayed_ranks(1);
    fail(&made[0], 5 * kSecond);
    fail(&made[1], 5 * kSecond);
    CHECK(view_of(job_of(made)).setting);
    made[1].devices[0].settings[0].ooms = 1;
    CHECK_FALSE(view_of(job_of(made)).setting);
}

TEST_CASE("ranks of another generation do not count in the balance") {
    std::vector<ProcessSummary> made = ranks(4);
    for (ProcessSummary& process : made) {
        process.devices[0].run.peak_allocated = 10 * kGiB;
    }
    fail(&made[2], 5 * kSecond);
    made[2].devices[0].run.peak_allocated = 21 * kGiB;
    made[2].devices[0].failures = {
        {.time_ns = 5 * kSecond, .requested_bytes = 5 * kGiB, .allocated_bytes = 21 * kGiB}};
    ProcessSummary later = rank_of(0);
    later.pid = 900;
    later.place.generation = 1;
    later.start_unix_ns += 60 * kSecond;
    later.devices[0].run.peak_allocated = 2 * kGiB;
    made.push_back(later);
    const auto shares = view_of(job_of(made)).shares;
    REQUIRE(shares);
    CHECK(shares->others == 3);
    CHECK(shares->least_bytes == 10 * kGiB);
    // A rank that allocated nothing needs 0 B. What a rank without an end needs is not known.
    made[0].devices.clear();
    const auto with_idle = view_of(job_of(made)).shares;
    REQUIRE(with_idle);
    CHECK(with_idle->others == 3);
    CHECK(with_idle->least_bytes == 0);
    made[0].end = {.ending = Ending::kNotRecorded};
    CHECK_FALSE(view_of(job_of(made)).shares);
}

TEST_CASE("a process whose end was seen at that moment uses the card no more") {
    ProcessSummary failed = rank_of(0);
    ProcessSummary other = rank_of(1, 3 * kGiB);
    other.start_unix_ns = failed.start_unix_ns;
    fail(&failed, 5 * kSecond);
    kill(&other, SIGKILL);
    for (const bool earlier : {true, false}) {
        other.killed.seen_ns = 5 * kSecond + (earlier ? 0 : 1);
        const std::vector<SharedCard> shared = shared_cards(on_one_card(failed, other));
        // Without it, nobody shares the card.
        CHECK(shared.size() == (earlier ? 0 : 1));
        CHECK((shared.empty() || shared[0].users.size() == 2));
    }
}

TEST_CASE("the time since a process's last event counts on its own clock") {
    ProcessSummary failed = rank_of(0);
    ProcessSummary other = rank_of(1, 3 * kGiB);
    other.start_unix_ns = failed.start_unix_ns + kSecond;
    other.last_event_ns = kSecond;
    fail(&failed, 5 * kSecond);
    const std::vector<SharedCard> shared = shared_cards(on_one_card(failed, other));
    REQUIRE(shared.size() == 1);
    REQUIRE(shared[0].users.size() == 2);
    CHECK(shared[0].users[0].after_last_event_ns == 3 * kSecond);
}

TEST_CASE("bins that count together hold the most of each process, wherever their group begins") {
    constexpr std::size_t kBins = 80'000;  // of both: two bins count as one
    ProcessSummary first = rank_of(0);
    ProcessSummary second = rank_of(1);
    for (ProcessSummary* process : {&first, &second}) {
        process->start_unix_ns = kSecond;
        process->last_event_ns = kBins * 1000;
        process->devices[0].curve = {.bin_ns = 1000, .unit_bytes = kMiB};
        process->devices[0].curve.reserved.assign(kBins, 1);
    }
    second.start_unix_ns -= 1000;  // a group of the other process begins within its group
    first.devices[0].curve.reserved[11] = 100;
    second.devices[0].curve.reserved[10] = 100;
    const std::vector<SharedCard> shared = shared_cards(on_one_card(first, second));
    REQUIRE(shared.size() == 1);
    CHECK(shared[0].sum_bytes == 200 * kMiB);
}

TEST_CASE("processes of one card that follow each other do not share it") {
    ProcessSummary first = rank_of(0);
    ProcessSummary second = rank_of(1);
    second.start_unix_ns = first.ended_at();
    CHECK_FALSE(has_shared_card(on_one_card(first, second)));
    CHECK_FALSE(has_shared_card(on_one_card(second, first)));
    --second.start_unix_ns;
    CHECK(has_shared_card(on_one_card(first, second)));
    CHECK(has_shared_card(on_one_card(second, first)));
}

TEST_CASE("a card on which one process held something at that moment is not shown") {
    ProcessSummary first = rank_of(0);
    ProcessSummary second = rank_of(1, 4 * kGiB);
    first.last_event_ns = kSecond;
    kill(&first, SIGKILL);
    first.killed.seen_ns = 2 * kSecond;
    second.start_unix_ns = first.start_unix_ns + 5 * kSecond;
    CHECK(shared_cards(on_one_card(first, second)).empty());
    first.killed.seen_ns = 20 * kSecond;
    CHECK(shared_cards(on_one_card(first, second)).size() == 1);
}

TEST_CASE("the moment of a card is its first failure, whatever the order of the processes") {
    ProcessSummary late = rank_of(0);
    ProcessSummary early = rank_of(1);
    fail(&late, 8 * kSecond);
    fail(&early, 5 * kSecond);
    for (const bool turned : {false, true}) {
        const Job job = turned ? on_one_card(early, late) : on_one_card(late, early);
        const std::vector<SharedCard> shared = shared_cards(job);
        REQUIRE(shared.size() == 1);
        CHECK(shared[0].at_unix_ns == early.start_unix_ns + 5 * kSecond);
        CHECK(job.processes[shared[0].failed.process].place.rank == 1);
    }
}

TEST_CASE("a process without a known start shares no card") {
    ProcessSummary unknown = rank_of(1);
    unknown.start_unix_ns = 0;
    CHECK(shared_cards(on_one_card(rank_of(0), unknown)).empty());
}

TEST_CASE("processes without a rank make no several jobs, and those without a job come last") {
    Job job;
    for (const auto& [rank, id] : {std::pair{0, "11"}, {1, "11"}, {-1, "11"}, {-1, "12"}}) {
        job.processes.push_back(rank_of(rank));
        job.processes.back().place.job_id = id;
    }
    CHECK(jobs_in(job).empty());
    job.processes.push_back(rank_of(0));
    job.processes.back().place.job_id = "12";
    job.processes.push_back(rank_of(5));
    job.processes.back().start_unix_ns = 1;
    const std::vector<OneJob> jobs = jobs_in(job);
    REQUIRE(jobs.size() == 3);
    CHECK(jobs[2].id.empty());
    CHECK(jobs[2].members == std::vector<std::size_t>{5});
}

namespace {

constexpr std::uint64_t kAddress = 0x7f0010000000;
constexpr std::uint64_t kFailure = 1'000'000;  // ns
const std::string kBoth = "event 1 used 0 free 0 self 100, 100 1, 101 1";

// A card that ran full. The first process failed on it, the second one has a trace, too.
class FullCard {
  public:
    // `list`: what the driver's library said about the card; empty = nothing.
    explicit FullCard(const std::string& list, bool paused = false) {
        std::vector<ProcessSummary> made = {rank_of(0), rank_of(1)};
        for (int i = 0; i < 2; ++i) {
            TraceWriter trace;
            trace.device_alloc(kAddress, (i + 1) * 10 * kMiB, false);
            if (i == 0 && !list.empty()) {
                trace.fact("device.0.processes.1", list);
            }
            if (i == 1 && paused) {
                trace.simple(EventKind::kRecordingStopped, 0, 0, 0);
            }
            trace.end(EndReason::kNormal);
            made[i].path = folder_.file(std::to_string(i) + ".ftrace");
            trace.save(made[i].path);
            made[i].start_unix_ns = kSecond;
            made[i].last_event_ns = 20 * kSecond;
        }
        fail(&made[0], kFailure);
        made[0].last_event_ns = 20 * kSecond;
        job = on_one_card(made[0], made[1]);
        for (ProcessSummary& process : job.processes) {
            process.devices[0].device = 0;
        }
    }

    // nullopt: a single process held memory of the card at the failure.
    [[nodiscard]] std::optional<SharedCard> find() const {
        JobView view = view_of(job);
        REQUIRE(view.shared.size() == 1);
        add_moments(job, &view);
        return view.shared.empty() ? std::nullopt : std::optional(view.shared[0]);
    }

    [[nodiscard]] SharedCard look() const {
        const std::optional<SharedCard> card = find();
        REQUIRE(card);
        return *card;
    }

    Job job;

  private:
    TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("what the traces of a full card hold is exact, unless a process was silent or paused") {
    FullCard whole(kBoth);
    CHECK(whole.look().exact);
    CHECK(whole.look().sum_bytes == 30 * kMiB);
    FullCard paused(kBoth, true);
    CHECK_FALSE(paused.look().exact);
    CHECK(paused.look().users.size() == 2);
    FullCard silent("");
    silent.job.processes[1].last_event_ns = kFailure / 2;
    CHECK_FALSE(silent.look().exact);
    CHECK(silent.look().sum_bytes == 30 * kMiB);
}

TEST_CASE("a process that the driver's list does not have ended, unless it had later events") {
    FullCard card("event 1 used 0 free 0 self 100, 100 1");
    CHECK(card.look().users.size() == 2);
    card.job.processes[1].last_event_ns = kFailure / 2;
    CHECK_FALSE(card.find());
    FullCard later("event 1000 used 0 free 0 self 100, 100 1");  // of another moment
    later.job.processes[1].last_event_ns = kFailure / 2;
    CHECK(later.look().users.size() == 2);
}

TEST_CASE("a process that held memory had more than its context") {
    FullCard card(kBoth);
    card.job.processes[1].contexts = {{.uuid = "GPU-shared", .bytes = kMiB}};
    const SharedCard shared = card.look();
    REQUIRE(shared.contexts.size() == 1);
    CHECK_FALSE(shared.contexts[0].nothing_else);
}
