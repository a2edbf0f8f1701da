// The view of a job: first failure and its victims, groups and what makes others differ, card and
// setting for all, shared cards, and their text.
#include "analyzer/analysis/job/job_view.h"

#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/analysis/job/read_job.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/json/job_json.h"
#include "analyzer/report/text/job_names.h"
#include "analyzer/report/text/job_text.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fmt/format.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

namespace {

std::vector<std::string> lines_of(const Job& job) {
    std::vector<std::string> lines(1);
    for (const char byte : job_text(job, view_of(job), Terminal(1, ColorChoice::kNever))) {
        if (byte == '\n') {
            lines.emplace_back();
        } else {
            lines.back() += byte;
        }
    }
    return lines;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the rank that ran out of memory first is named in 20 of 20 random jobs") {
    Random random(20);
    for (int round = 0; round < 20; ++round) {
        const int count = 8;
        const int victim = static_cast<int>(below(random, count));
        const std::uint64_t at_ns = 1'000'000'000 + below(random, 8'000'000'000);
        std::vector<ProcessSummary> made;
        for (int rank = 0; rank < count; ++rank) {
            ProcessSummary process = rank_of(rank, 2 * kGiB + below(random, 16 * kMiB));
            process.start_unix_ns += below(random, 500'000'000);
            if (rank == victim) {
                fail(&process, at_ns);
                process.devices[0].failures = {{.time_ns = at_ns,
                                                .requested_bytes = kGiB,
                                                .verdict = "genuine",
                                                .why = "not enough memory",
                                                .at = "train.py:42 step",
                                                .culprit = "train.py:42 step holds most",
                                                .remedy = "none"}};
            } else {
                switch (below(random, 4)) {
                    case 0:
                        kill(&process, SIGTERM);
                        break;
                    case 1:
                        kill(&process, SIGABRT);
                        break;
                    case 2:
                        process.end = {.ending = Ending::kNormal, .code = 1};
                        break;
                    default:  // ran out of memory later, or caught it
                        fail(&process, at_ns + 1'000'000'000, static_cast<int>(below(random, 2)));
                }
                process.last_event_ns = below(random, at_ns + 2'000'000'000);
            }
            made.push_back(process);
        }
        std::shuffle(made.begin(), made.end(), random);
        const std::vector<std::string> lines = lines_of(job_of(std::move(made)));
        CHECK(lines[0].starts_with("rank " + std::to_string(victim) +
                                   " of 8 ran out of memory "
                                   "first, "));
        CHECK(lines[1] == "  verdict    not enough memory");
        CHECK(contains(lines[2], "train.py:42 step"));
    }
}

TEST_CASE("a rank that is known to have died before the out-of-memory failed first") {
    Random random(21);
    for (int round = 0; round < 20; ++round) {
        std::vector<ProcessSummary> made = ranks(4);
        const std::size_t crashed = below(random, 4);
        const std::size_t out_of_memory = (crashed + 1 + below(random, 3)) % 4;
        const std::uint64_t at_ns = 2'000'000'000 + below(random, 1'000'000'000);
        ProcessSummary& first = made[crashed];
        fail(&made[out_of_memory], at_ns);
        made[out_of_memory].devices[0].failures = {{.time_ns = at_ns, .why = "not enough memory"}};
        if (below(random, 2) == 0) {
            kill(&first, SIGSEGV);
            first.killed = {.alive_ns = at_ns - 1'600'000'000, .seen_ns = at_ns - 1'500'000'000};
        } else {
            first.end = {.ending = Ending::kNormal, .code = 3};
            first.end_ns = at_ns - 1'500'000'000;
        }
        first.last_event_ns = at_ns - 1'700'000'000;
        const auto named = first_failure(job_of(made));
        REQUIRE(named);
        CHECK(named->process == crashed);
        CHECK(named->later_oom == out_of_memory);
        const std::vector<std::string> lines = lines_of(job_of(made));
        CHECK(lines[0].starts_with(fmt::format("rank {} of 4 failed first: ", crashed)));
        CHECK(lines[1] == "  others     1 ran out of memory; 2 without a known failure");
        CHECK(lines[2].starts_with(fmt::format("rank {} ran out of memory ", out_of_memory)));
        CHECK(lines[3] == "  verdict    not enough memory");

        // A victim fails later; of another host, the clock may be wrong by a second.
        const bool killed = first.end.signal.has_value();
        first.end_ns = killed ? std::nullopt : std::optional(at_ns + 10'000);
        first.killed = {.alive_ns = at_ns - 10, .seen_ns = at_ns + 10'000};
        CHECK(first_failure(job_of(made))->process == out_of_memory);
        first.end_ns = killed ? std::nullopt : std::optional(at_ns - 900'000'000);
        first.killed = {.alive_ns = at_ns - 950'000'000, .seen_ns = at_ns - 900'000'000};
        CHECK(first_failure(job_of(made))->process == crashed);
        first.place.host = "node2";
        CHECK(first_failure(job_of(made))->process == out_of_memory);
        CHECK(contains(lines_of(job_of(made))[2], "failed before it or because of it: 1 "));
        CHECK(contains(lines_of(job_of(made))[2],
                       killed ? "may have failed first: it was last known to run 9"
                              : "by the clock of node2, "));
        first.place.host = made[out_of_memory].place.host;

        // When it ended is not known.
        first.end_ns = std::nullopt;
        first.killed = {};
        CHECK(first_failure(job_of(made))->process == out_of_memory);
        CHECK(contains(lines_of(job_of(made))[2],
                       " may have failed first: it was last known to run"));
        // Its end was seen after the out-of-memory, because its parent waited for others.
        first.killed = {.alive_ns = at_ns - 400'000'000, .seen_ns = at_ns + 5'000'000'000};
        if (killed) {
            const GenerationEnd end = view_of(job_of(made)).generations[0];
            CHECK(end.maybe_earlier == crashed);
            CHECK(end.perhaps_before.size() == 1);
            CHECK(end.failed_otherwise.empty());
            CHECK(contains(lines_of(job_of(made))[2], ", and its end was seen 5 s after it"));
        }
        first.killed = {};
        // A helper may end as it likes.
        first.end_ns = at_ns - 1'500'000'000;
        first.place.rank = -1;
        CHECK_FALSE(first_failure(job_of(made))->later_oom);
    }
}

TEST_CASE("an out-of-memory that a program got past is no first failure") {
    std::vector<ProcessSummary> made = ranks(3);
    made[0].devices[0].first_oom_ns = 1'000'000'000;  // and thousands of requests after it
    made[0].devices[0].run.ooms = 1;
    made[0].end = {.ending = Ending::kNormal, .code = 0};
    CHECK(lines_of(job_of(made))[0] ==
          "rank 0 of 3 ran out of memory first, and got past it, 1 s after the job began");
    kill(&made[1], SIGSEGV);
    made[1].last_event_ns = 100;
    made[1].start_unix_ns = made[0].start_unix_ns;
    made[1].killed = {.alive_ns = 8'900'000'000, .seen_ns = 9'000'000'000};
    CHECK(lines_of(job_of(made))[0] ==
          "rank 1 of 3 failed first: SIGSEGV, 8.9 s to 9 s after the "
          "job began");
    CHECK(lines_of(job_of(made))[1] ==
          "  others     2 without a known failure; 1 of the others ran out of memory and got past "
          "it");
    made[0].end.code = 1;  // later, for another reason
    made[0].last_event_ns = 9'500'000'000;
    made[0].end_ns = 9'500'000'000;
    CHECK(first_failure(job_of(made))->process == 1);
    fail(&made[2], 5'000'000'000);
    CHECK(lines_of(job_of(made))[0] ==
          "rank 2 of 3 failed first: out of memory, 5 s after the job began");
}

TEST_CASE("a helper's out-of-memory is no first failure if its rank ended normally") {
    std::vector<ProcessSummary> made = ranks(3);
    for (ProcessSummary& process : made) {
        process.place.process = {.pid = process.pid, .start_ticks = 5};
    }
    ProcessSummary& helper = made[2];
    helper.place.rank = 0;
    helper.place.ancestors = {made[0].place.process};
    fail(&helper, 1'000'000'000);
    fail(&made[1], 5'000'000'000);
    const Job job = job_of(made);
    CHECK(lines_of(job)[0] == "rank 1 of 3 failed first: out of memory, 5 s after the job began");
    CHECK(contains(lines_of(job)[1] + lines_of(job)[2],
                   "1 helper of a rank that ended normally ran out of memory"));
    made[0].end.code = 1;  // perhaps because of its helper
    CHECK(contains(lines_of(job_of(made))[0], "(helper of rank 0) of 3 processes ran out of"));
    // An exec ends nothing.
    made[2].end = {.ending = Ending::kExec};
    CHECK_FALSE(made[2].fatal_oom());
}

TEST_CASE("a termination before the out-of-memory is not called its consequence") {
    std::vector<ProcessSummary> made = ranks(2);
    fail(&made[0], 5'000'000'000);
    kill(&made[1], SIGTERM);
    made[1].last_event_ns = 100;
    made[1].killed = {.alive_ns = 1'000'000'000, .seen_ns = 1'100'000'000};
    CHECK(lines_of(job_of(made))[0].starts_with("rank 0 of 2 ran out of memory first"));
    CHECK(contains(lines_of(job_of(made))[1] + lines_of(job_of(made))[2],
                   "1 of the others failed before it: 1 SIGTERM"));
}

TEST_CASE("whether a process of another host died may be unknown") {
    std::vector<ProcessSummary> made = ranks(3);
    made[1].end = {.ending = Ending::kNotRecorded};
    made[1].last_event_ns = 100;
    CHECK(lines_of(job_of(made))[0] == "no known failure in 3 processes");
    CHECK(lines_of(job_of(made))[1] ==
          "  others     whether rank 1 died or still runs is not recorded: `fraganalyze list "
          "--absorb` on its host, in its container, can tell");
    made[2].end = {.ending = Ending::kNormal, .code = 1};
    made[2].end_ns = 200;
    CHECK(contains(lines_of(job_of(made))[1],
                   "rank 1 may have failed first: it was last known to run"));
    // On this host it has ended.
    made[1].end = {.ending = Ending::kKilled};
    CHECK(first_failure(job_of(made))->process == 1);
    CHECK(
        contains(lines_of(job_of(made))[0], "failed first: died for an unknown reason, at least"));
}

TEST_CASE("processes with the same rank are told apart") {
    std::vector<ProcessSummary> made = ranks(3);
    made[2].place.rank = 1;
    made[2].pid = 77;
    made[2].start_unix_ns = made[1].start_unix_ns;
    fail(&made[2], 100);
    const Job job = job_of(made);
    CHECK(jobs_in(job).empty());  // both ran at the same time
    CHECK(contains(lines_of(job)[0], "rank 1 (pid 77) of 3 ran out of memory first"));
    // One after the other: two runs.
    made[2].start_unix_ns += 3'600'000'000'000;
    const std::vector<OneJob> runs = jobs_in(job_of(made));
    REQUIRE(runs.size() == 2);
    CHECK(job_heading(runs[0]) == "run-1 (2 traces)");
    CHECK(job_heading(runs[1]) == "run-2 (1 trace)");
    CHECK(contains(lines_of(runs[1].job)[0], "rank 1 of 3 ran out of memory first"));
    Job one = job_of(made);
    CHECK_FALSE(keep_job("run-3", &one));
    CHECK(keep_job("run-2", &one));
    CHECK(one.processes.size() == 1);
}

TEST_CASE("the program before an exec is no rank of its own") {
    std::vector<ProcessSummary> made = ranks(2);
    made.push_back(made[1]);
    made[1].place.process = made[2].place.process = {.pid = made[1].pid, .start_ticks = 5};
    made[2].start_unix_ns += 10;
    made[1].end = {.ending = Ending::kExec};
    made[1].file = "before.ftrace";
    const Job job = job_of(made);
    CHECK(job.processes[2].place.rank == -1);
    CHECK(job.processes[2].place.inherited_rank == 1);
    CHECK(job.processes[1].told_apart_by.empty());
    CHECK(name_of(job.processes[2]).ends_with("(before it became rank 1)"));
    CHECK(view_of(job).generations[0].processes == 2);
}

TEST_CASE("ranks are compared with ranks, not with their many helpers") {
    std::vector<ProcessSummary> made = ranks(4);
    for (int helper = 0; helper < 8; ++helper) {
        made.push_back(rank_of(-1, 10 * kMiB));
        made.back().pid = 5000 + static_cast<std::uint32_t>(helper);
    }
    made[3].devices[0].run.peak_reserved += kGiB;
    const Job job = job_of(made);
    const JobView view = view_of(job);
    REQUIRE(view.groups.size() == 3);
    CHECK(view.groups[0].members.size() == 3);
    CHECK(job.processes[view.groups[0].front()].place.rank == 0);
    for (const GroupDifference& difference : view.differences) {
        CHECK(difference.from == 0);
    }
}

TEST_CASE("no size is enough for a card that processes use at the same time") {
    std::vector<ProcessSummary> made = ranks(2);
    CHECK(view_of(job_of(made)).card.has_value());
    made[0].devices[0].uuid = made[1].devices[0].uuid = "GPU-shared";
    const Job job = job_of(made);
    CHECK_FALSE(view_of(job).card.has_value());
    const std::vector<std::string> lines = lines_of(job);
    CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
              return contains(line, "card       not known: processes share a card");
          }) == 1);
}

TEST_CASE("the others of a failed job are counted by how they ended") {
    std::vector<ProcessSummary> made = ranks(8);
    fail(&made[3], 5'000'000'000);
    for (const int rank : {0, 1, 2, 4, 5}) {
        kill(&made[rank], SIGTERM);
    }
    kill(&made[6], SIGABRT);
    const JobView view = view_of(job_of(made));
    REQUIRE(view.generations.size() == 1);
    const GenerationEnd& end = view.generations[0];
    CHECK(end.first->process == 3);
    CHECK(end.did_not_fail == 1);
    CHECK(end.also_out_of_memory == 0);
    REQUIRE(end.failed_otherwise.size() == 2);
    CHECK(end.failed_otherwise[0].second == 5);
    CHECK(*end.failed_otherwise[0].first.signal == SIGTERM);
    CHECK_FALSE(end.as_early);
    const std::vector<std::string> lines = lines_of(job_of(made));
    CHECK(lines[0] == "rank 3 of 8 ran out of memory first, 5 s after the job began");
    CHECK(contains(lines[1],
                   "6 of the others failed otherwise, most likely because of it: 5 "
                   "SIGTERM, 1 SIGABRT; 1 without a known failure"));
}

TEST_CASE("a failure without an out-of-memory has a time, which a signal makes a lower bound") {
    std::vector<ProcessSummary> made = ranks(2);
    made[0].last_event_ns = 10;
    made[0].end_ns = 2'500'000'000;
    made[0].end.code = 5;
    made[1].start_unix_ns = made[0].start_unix_ns;
    made[1].last_event_ns = 500'000'000;
    made[1].end_ns = 800'000'000;
    made[1].end.code = 1;
    std::vector<std::string> lines = lines_of(job_of(made));
    CHECK(lines[0] == "rank 1 of 2 failed first: exit code 1, 800 ms after the job began");
    CHECK(lines[1] == "  others     1 of the others failed too: 1 exit code 5");
    kill(&made[1], SIGABRT);
    made[1].end_ns = std::nullopt;
    const Job job = job_of(made);
    lines = lines_of(job);
    CHECK(lines[0] == "rank 1 of 2 failed first: SIGABRT, at least 500 ms after the job began");
    CHECK(lines[1] ==
          "  others     1 of the others failed too: 1 exit code 5; when rank 1 ended is not known "
          "exactly: rank 0 may have failed before it");
    const auto json = nlohmann::json::parse(job_json("", job, view_of(job)));
    CHECK(json["first_failure"]["time_unix_ns"] == 1'500'000'000);
    CHECK(json["first_failure"]["time_at_least"] == true);
    CHECK(json["first_failure"]["time_until_unix_ns"].is_null());
    CHECK(json["generations"][0]["maybe_earlier"] == 0);
    // Both bounds are known, and the other process ended between them, or after them.
    made[1].killed = {.alive_ns = 600'000'000, .seen_ns = 2'600'000'000};
    lines = lines_of(job_of(made));
    CHECK(lines[0] == "rank 1 of 2 failed first: SIGABRT, 600 ms to 2.6 s after the job began");
    CHECK(contains(lines[1], "rank 0 may have failed before it"));
    made[1].killed.seen_ns = 700'000'000;
    const Job known = job_of(made);
    lines = lines_of(known);
    CHECK(lines[0] == "rank 1 of 2 failed first: SIGABRT, 600 ms to 700 ms after the job began");
    CHECK(lines[1] == "  others     1 of the others failed too: 1 exit code 5");
    const auto bounds = nlohmann::json::parse(job_json("", known, view_of(known)));
    CHECK(bounds["first_failure"]["time_unix_ns"] == 1'600'000'000);
    CHECK(bounds["first_failure"]["time_until_unix_ns"] == 1'700'000'000);
    CHECK(bounds["first_failure"]["time_at_least"] == false);
    made[1].killed = {};
    // A signal of others is no first failure.
    kill(&made[0], SIGTERM);
    made[0].end_ns = std::nullopt;
    CHECK_FALSE(view_of(job_of(made)).generations[0].maybe_earlier);
}

TEST_CASE("an out-of-memory that a process survived is not blamed for the failures of others") {
    std::vector<ProcessSummary> made = ranks(2);
    fail(&made[0], 1'000'000'000, 0);
    kill(&made[1], SIGABRT);
    CHECK(contains(lines_of(job_of(made))[0], "rank 1 of 2 failed first: SIGABRT"));
    CHECK(lines_of(job_of(made))[1] ==
          "  others     1 without a known failure; 1 of the others ran out of memory and got past "
          "it");
    made[0].devices[0].final_oom_ns = made[0].devices[0].first_oom_ns;
    CHECK(contains(lines_of(job_of(made))[1], ", most likely because of it: 1 SIGABRT"));
    made[0].devices[0].final_oom_ns = std::nullopt;
    made[0].end.code = 1;
    CHECK(contains(lines_of(job_of(made))[1], ", most likely because of it: 1 SIGABRT"));
}

TEST_CASE("an out-of-memory of another host in the same second may have been the first") {
    std::vector<ProcessSummary> made = ranks(2);
    fail(&made[0], 5'000'000'000);
    fail(&made[1], 5'500'000'000);
    CHECK_FALSE(view_of(job_of(made)).generations[0].as_early);  // one clock
    made[1].place.host = "node2";
    CHECK(view_of(job_of(made)).generations[0].as_early == 1u);
    CHECK(contains(lines_of(job_of(made))[1], "rank 1 on node2 ran out of memory within a second"));
    made[1].devices[0].near_end_oom_ns = 7'000'000'000;
    CHECK_FALSE(view_of(job_of(made)).generations[0].as_early);
}

TEST_CASE("unequal ranks whose equal shares would fit are told what a rank would need") {
    std::vector<ProcessSummary> made = ranks(4);
    for (ProcessSummary& process : made) {
        process.devices[0].run.peak_allocated = 10 * kGiB;
    }
    fail(&made[2], 5'000'000'000);
    ProcessDevice& device = made[2].devices[0];
    device.run.peak_allocated = 21 * kGiB;
    // The peak was before: 19 GiB were allocated at the failure.
    device.failures = {
        {.time_ns = 5'000'000'000, .requested_bytes = 7 * kGiB, .allocated_bytes = 19 * kGiB}};
    const auto shares = view_of(job_of(made)).shares;
    REQUIRE(shares);
    CHECK(shares->process == 2);
    CHECK(shares->needed_bytes == 26 * kGiB);
    CHECK(shares->others == 3);
    CHECK(shares->least_bytes == 10 * kGiB);
    CHECK(shares->equal_bytes == 14 * kGiB);
    CHECK(shares->capacity_bytes == 23 * kGiB);
    const std::vector<std::string> lines = lines_of(job_of(made));
    CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
        return contains(line,
                        "balance    rank 2 needed at least 26 GiB, the 3 others 10 GiB: in equal "
                        "shares each would need 14 GiB of 23 GiB");
    }));
    made[1].devices[0].run.peak_allocated = 21 * kGiB;  // one that needs nearly as much
    CHECK_FALSE(view_of(job_of(made)).shares);
    made[1].devices[0].run.peak_allocated = 10 * kGiB;
    fail(&made[1], 6'000'000'000);  // one that requested as much, later
    made[1].devices[0].failures = {
        {.time_ns = 6'000'000'000, .requested_bytes = 16 * kGiB, .allocated_bytes = 9 * kGiB}};
    CHECK_FALSE(view_of(job_of(made)).shares);
    made[1] = made[0];
    made[1].place.rank = 1;
    device.capacity_bytes = 13 * kGiB;  // equal shares do not fit either
    CHECK_FALSE(view_of(job_of(made)).shares);
}

TEST_CASE("generations of an elastic restart are kept apart") {
    std::vector<ProcessSummary> made;
    for (int generation = 0; generation < 2; ++generation) {
        for (ProcessSummary process : ranks(4)) {
            process.place.generation = generation;
            process.pid += 1000 * static_cast<std::uint32_t>(generation);
            process.start_unix_ns += std::uint64_t{100'000'000'000} * generation;
            made.push_back(process);
        }
    }
    fail(&made[2], 1'000'000'000);
    fail(&made[4], 2'000'000'000);
    made[2].devices[0].failures = {{.verdict = "genuine", .why = "cause of the first"}};
    made[4].devices[0].failures = {{.verdict = "genuine", .why = "cause of the second"}};
    const Job job = job_of(made);
    const JobView view = view_of(job);
    REQUIRE(view.generations.size() == 2);
    CHECK(job.processes[view.generations[0].first->process].place.rank == 2);
    CHECK(job.processes[view.generations[1].first->process].place.rank == 0);
    CHECK(view.generations[1].first->of == 4);
    CHECK(view.groups.size() == 4);  // equal ranks of two generations are two groups
    const std::vector<std::string> lines = lines_of(job);
    CHECK(lines[0] == "generation 0: rank 2 of 4 ran out of memory first, 1 s after the job began");
    CHECK(lines[1] == "  verdict    cause of the first");
    const auto second =
        std::find(lines.begin(),
                  lines.end(),
                  "generation 1: rank 0 of 4 ran out of memory first, 102 s after the job began");
    REQUIRE(second != lines.end());
    CHECK(*(second + 1) == "  verdict    cause of the second");
    // Both are replayed, before any group.
    CHECK(representatives(job, 2) == std::vector<std::size_t>{2, 4});
}

TEST_CASE(
    "a rank that holds more than its equals is named, with the line that makes the difference") {
    std::vector<ProcessSummary> made = ranks(8);
    made[5].devices[0].run.peak_reserved += 20 * kMiB;  // within 5 %
    ProcessSummary& other = made[3];
    other = rank_of(3, 6 * kGiB);
    const JobView view = view_of(job_of(made));
    REQUIRE(view.groups.size() == 2);
    CHECK(view.groups[0].members == std::vector<std::size_t>{0, 1, 2, 4, 5, 6, 7});
    CHECK(view.groups[0].most_reserved == 2 * kGiB + 20 * kMiB);
    CHECK(view.groups[1].members == std::vector<std::size_t>{3});
    REQUIRE(view.differences.size() == 1);
    const GroupDifference& difference = view.differences[0];
    CHECK(difference.reserved == static_cast<std::int64_t>(4 * kGiB));
    REQUIRE(difference.lines.size() == 1);
    CHECK(difference.lines[0].line == "train.py:42 step");
    CHECK(difference.lines[0].bytes == static_cast<std::int64_t>(4 * kGiB));
    const std::vector<std::string> lines = lines_of(job_of(made));
    CHECK(lines[0] == "no known failure in 8 processes");
    CHECK(lines[1] == "  equal      ranks 0-2, 4-7 (7): peak 2 GiB to 2.02 GiB");
    CHECK(
        lines[2] ==
        "  differs    rank 3: peak 6 GiB, 4 GiB more than ranks 0-2, 4-7: +4 GiB train.py:42 step");
}

namespace {

std::string line_with(const Job& job, const std::string& part) {
    for (const std::string& line : lines_of(job)) {
        if (contains(line, part)) {
            return line;
        }
    }
    return "";
}

}  // namespace

TEST_CASE("groups are compared within their generation, and named with it") {
    std::vector<ProcessSummary> made;
    for (int generation = 0; generation < 2; ++generation) {
        for (ProcessSummary process : ranks(3)) {
            process.place.generation = generation;
            process.pid += 1000 * static_cast<std::uint32_t>(generation);
            made.push_back(process);
        }
    }
    made[2].devices = rank_of(2, 6 * kGiB).devices;
    made[5].devices = rank_of(2, 4 * kGiB).devices;
    for (const std::size_t i : {4, 5}) {
        made[i].devices[0].run.peak_reserved += 3 * kGiB;
    }
    const Job job = job_of(made);
    const JobView view = view_of(job);
    REQUIRE(view.groups.size() == 5);
    REQUIRE(view.differences.size() == 3);  // each generation has a largest group
    CHECK(line_with(job, "equal ") == "  equal      ranks 0-1 of generation 0 (2): peak 2 GiB");
    CHECK(line_with(job, "differs    rank 2 of generation 0") ==
          "  differs    rank 2 of generation 0: peak 6 GiB, 4 GiB more than ranks 0-1 of "
          "generation 0: +4 GiB train.py:42 step");
    CHECK(contains(line_with(job, "differs    rank 1 of generation 1"),
                   ": peak 5 GiB, 3 GiB more than rank 0 of generation 1"));
    CHECK(contains(line_with(job, "differs    rank 2 of generation 1"),
                   ": peak 7 GiB, 5 GiB more than rank 0 of generation 1"));
    const auto json = nlohmann::json::parse(job_json("", job, view));
    CHECK(json["groups"][0]["difference"].is_null());
    for (std::size_t i = 1; i < 5; ++i) {
        const auto& difference = json["groups"][i]["difference"];
        if (!difference.is_null()) {
            const auto generation = [&](std::size_t group) {
                const std::size_t first = json["groups"][group]["processes"][0];
                return json["processes"][first]["generation"];
            };
            CHECK(generation(difference["from"]) == generation(i));
        }
    }
}

TEST_CASE("processes of several generations that were replayed are named with them") {
    std::vector<ProcessSummary> made = ranks(2);
    made[1].place.generation = 1;
    for (ProcessSummary& process : made) {
        process.replayed = true;
        process.devices[0].settings = {replay("A", 0, kGiB), replay("now", 0, 2 * kGiB)};
        process.devices[0].settings[1].recorded = true;
    }
    CHECK(contains(line_with(job_of(made), "setting "),
                   "replayed on rank 0 of generation 0, rank 1 of generation 1)"));
}

TEST_CASE("ranks of the world size that have no trace are counted and named") {
    std::vector<ProcessSummary> made = ranks(8);
    CHECK(line_with(job_of(made), "  missing").empty());
    fail(&made[3], 5'000'000'000);
    made.erase(made.begin() + 5, made.begin() + 7);
    made.erase(made.begin());
    const Job job = job_of(made);
    const std::vector<std::string> lines = lines_of(job);
    CHECK(lines[0].starts_with("rank 3 of 8 ran out of memory first, "));
    CHECK(line_with(job, "  missing") ==
          "  missing    3 of 8 ranks have no readable trace here: ranks 0, 5-6");
    const auto json = nlohmann::json::parse(job_json("", job, view_of(job)));
    CHECK(json["first_failure"]["of"] == 5);
    CHECK(json["generations"][0]["world_size"] == 8);
    CHECK(json["generations"][0]["ranks_missing"] == 3);
    made = ranks(2);
    made[1].place.world_size = 3;
    CHECK(line_with(job_of(made), "  missing") ==
          "  missing    1 of 3 ranks has no readable trace here: rank 2");
    made[1].place.world_size = 1'000'000;
    CHECK(line_with(job_of(made), "  missing") ==
          "  missing    999,998 of 1,000,000 ranks have no readable trace here: ranks 2-999999");
}

TEST_CASE("equal ranks of two jobs in one folder are kept apart") {
    std::vector<ProcessSummary> made = ranks(2);
    for (ProcessSummary process : ranks(2)) {
        process.pid += 1000;
        process.start_unix_ns -= 500'000'000;
        made.push_back(process);
    }
    for (std::size_t i = 0; i < made.size(); ++i) {
        made[i].place.job_id = i < 2 ? "11" : "12";
    }
    fail(&made[1], 5'000'000'000);
    fail(&made[3], 6'000'000'000);
    made.push_back(rank_of(7));
    made.back().place.rank = -1;
    const Job job = job_of(made);
    const std::vector<OneJob> jobs = jobs_in(job);
    REQUIRE(jobs.size() == 3);  // by their start; processes without a job last
    CHECK(job_heading(jobs[0]) == "job 12 (2 traces)");
    CHECK(job_heading(jobs[1]) == "job 11 (2 traces)");
    CHECK(job_heading(jobs[2]) == "no job id (1 trace)");
    CHECK(lines_of(jobs[0].job)[0] ==
          "rank 1 of 2 ran out of memory first, 6 s after the job began");
    CHECK(lines_of(jobs[1].job)[0] ==
          "rank 1 of 2 ran out of memory first, 5 s after the job began");
    for (const OneJob& one : jobs) {
        REQUIRE(one.members.size() == one.job.processes.size());
        for (std::size_t i = 0; i < one.members.size(); ++i) {
            CHECK(job.processes[one.members[i]].identity() == one.job.processes[i].identity());
        }
    }
    const auto json = nlohmann::json::parse(job_json("", job, view_of(job)))["mixed_jobs"];
    REQUIRE(json.size() == 3);
    CHECK(json[1]["job_id"] == "11");
    CHECK(json[1]["processes"] == 2);
    CHECK(json[1]["indices"] == jobs[1].members);
    CHECK(json[1]["first_failure"]["index"] == jobs[1].members[1]);
    CHECK(json[2]["job_id"].is_null());
    CHECK(json[2]["first_failure"].is_null());
    CHECK(jobs_table(jobs, "my traces") ==
          "The traces are of 3 jobs or runs, whose ranks have the same numbers. One of them:\n"
          "  fraganalyze 'my traces' --job-id 12\n"
          "  job 12 (2 traces): rank 1 of 2 ran out of memory first\n"
          "  job 11 (2 traces): rank 1 of 2 ran out of memory first\n"
          "  no job id (1 trace): no known failure\n");
    Job one = job;
    CHECK_FALSE(keep_job("13", &one));
    CHECK(one.processes.size() == 5);
    CHECK(keep_job("11", &one));
    CHECK(one.processes.size() == 2);
    CHECK(jobs_in(one).empty());
    one = job;
    CHECK(keep_job("-", &one));
    CHECK(one.processes.size() == 1);
    // Ranks that differ may belong to one run.
    made[2].place.rank = 2;
    made[3].place.rank = 3;
    CHECK(jobs_in(job_of(made)).empty());
    for (ProcessSummary& process : made) {
        process.place.job_id = "11";
    }
    made[2].place.rank = 0;
    CHECK(jobs_in(job_of(made)).empty());
}

TEST_CASE("a group differs by what made it a group, not by small lines") {
    const auto differs = [](const auto& change) {
        std::vector<ProcessSummary> made = ranks(3);
        change(&made[2]);
        return line_with(job_of(made), "differs ");
    };
    const auto shift_lines = [](ProcessSummary* process, std::uint64_t bytes) {
        process->devices[0].holders[0].bytes += bytes;
        process->devices[0].holders[1].bytes -= bytes;
    };
    CHECK(differs([&](ProcessSummary* process) { shift_lines(process, 2 * kMiB); }).empty());
    CHECK(differs([&](ProcessSummary* process) {
              shift_lines(process, 2 * kMiB);
              fail(process, 5'000'000'000);
          }) == "  differs    rank 2: peak 2 GiB as ranks 0-1; ran out of memory");
    CHECK(differs([&](ProcessSummary* process) {
              shift_lines(process, 2 * kMiB);
              process->devices[0].run.peak_allocated -= 200 * kMiB;
          }) ==
          "  differs    rank 2: peak 2 GiB as ranks 0-1; allocated 1.71 GiB instead of 1.9 GiB");
    CHECK(differs([&](ProcessSummary* process) { process->place.rank = -1; }) ==
          "  differs    pid 102: peak 2 GiB as ranks 0-1; without a rank");
    CHECK(differs([&](ProcessSummary* process) {
              process->devices.push_back(process->devices[0]);
              process->devices[1].device = 1;
          })
              .starts_with("  differs    rank 2: peak 4 GiB, 2 GiB more than ranks 0-1; 2 devices "
                           "instead of 1"));
    CHECK(differs([&](ProcessSummary* process) { shift_lines(process, 300 * kMiB); }) ==
          "  differs    rank 2: peak 2 GiB as ranks 0-1, but not in the same lines: +300 MiB "
          "train.py:10 weights; -300 MiB train.py:42 step");
    std::vector<ProcessSummary> made = ranks(3);
    fail(&made[2], 5'000'000'000);
    const Job job = job_of(made);
    const auto json = nlohmann::json::parse(job_json("", job, view_of(job)));
    CHECK(json["groups"][1]["difference"]["reasons"] == nlohmann::json{"out_of_memory"});
    CHECK(json["groups"][1]["difference"]["from"] == 0);
}

TEST_CASE("a line that only one list has differs by at least its distance to the shortest line") {
    std::vector<ProcessSummary> made = ranks(3);
    ProcessSummary& other = made[2];
    other = rank_of(2, 4 * kGiB);
    other.devices[0].holders.push_back({"train.py:99 extra", 500 * kMiB, 1});
    other.devices[0].holders[1].bytes = made[0].devices[0].holders[1].bytes;
    made[0].devices[0].all_holders = made[1].devices[0].all_holders = false;
    made[0].devices[0].holders.push_back({"small", 100 * kMiB, 1});
    made[1].devices[0].holders.push_back({"small", 100 * kMiB, 1});
    const GroupDifference difference = view_of(job_of(made)).differences.at(0);
    REQUIRE(difference.lines.size() == 1);  // 100 MiB of 4 GiB are no reason for two groups
    CHECK(difference.lines[0].line == "train.py:99 extra");
    CHECK(difference.lines[0].bytes == static_cast<std::int64_t>(400 * kMiB));
    CHECK(difference.lines[0].at_least);
}

TEST_CASE("without a replay, a card for all is the largest peak plus what is outside the pool") {
    std::vector<ProcessSummary> made = ranks(3);
    made[1] = rank_of(1, 4 * kGiB);
    auto card = view_of(job_of(made)).card;
    REQUIRE(card);
    CHECK(card->enough_bytes == 5 * kGiB);
    CHECK(card->replayed_bytes == 0);
    fail(&made[1], 5);  // what it would have needed is not known
    CHECK_FALSE(view_of(job_of(made)).card);
    made[1] = rank_of(1);
    made[1].devices[0].capacity_bytes = 0;
    CHECK_FALSE(view_of(job_of(made)).card);
}

TEST_CASE("a card and a setting for all were replayed on one process of each group") {
    std::vector<ProcessSummary> made = ranks(8);
    made[3] = rank_of(3, 6 * kGiB);
    fail(&made[3], 5'000'000'000);
    const auto cards = [](ProcessSummary* process, std::uint64_t least_gib) {
        for (const std::uint64_t gib : {4, 8, 12, 16}) {
            ReplaySummary row =
                replay("a card of " + std::to_string(gib) + " GiB", gib < least_gib ? 1 : 0, kGiB);
            row.total_bytes = gib * kGiB;
            process->devices[0].cards.push_back(row);
        }
    };
    const Job none = job_of(made);
    CHECK(representatives(none, 4) == std::vector<std::size_t>{3, 0});
    CHECK(representatives(none, 1) == std::vector<std::size_t>{3});
    made[3].replayed = true;
    made[3].devices[0].settings = {replay("A", 0, 5 * kGiB),
                                   replay("B", 0, 4 * kGiB),
                                   replay("default settings", 1, 6 * kGiB)};
    made[3].devices[0].settings[2].recorded = true;
    cards(&made[3], 12);
    CHECK(view_of(job_of(made)).card == std::nullopt);  // the other group was not replayed
    made[1].replayed = true;
    made[1].devices[0].settings = {
        replay("A", 0, 2 * kGiB), replay("B", 1, kGiB), replay("default settings", 0, 2 * kGiB)};
    made[1].devices[0].settings[2].recorded = true;
    made[1].devices[0].settings[0].class_words = "estimate";
    cards(&made[1], 4);
    const Job job = job_of(made);
    const JobView view = view_of(job);
    REQUIRE(view.card);
    CHECK(view.card->replayed_bytes == 12 * kGiB);
    CHECK(view.card->replayed == std::vector<std::size_t>{1, 3});
    CHECK(view.card->stand_for == 8);
    // B avoids the failure of rank 3, but fails on the others.
    REQUIRE(view.setting);
    CHECK(view.setting->name == "A");
    CHECK(view.setting->ooms == 0);
    CHECK(view.setting->recorded_ooms == 1);
    CHECK(view.setting->class_words == "estimate");
    CHECK(representatives(job, 4).empty());
    const std::vector<std::string> lines = lines_of(job);
    const auto has = [&](const std::string& text) {
        return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
            return contains(line, text);
        });
    };
    CHECK(
        has("on a card of 12 GiB all fit (exact; replayed on ranks 1, 3, which stand for 8 "
            "processes)"));
    CHECK(
        has("A: no out-of-memory (estimate; replayed on ranks 1, 3, which stand for 8 processes)"));
}

TEST_CASE("the smallest card that is enough is named first, and no larger one after it") {
    const auto card_lines = [](std::uint64_t peak) {
        std::vector<ProcessSummary> made = {rank_of(0, peak), rank_of(1, peak)};
        made[0].replayed = true;
        for (const std::uint64_t gib : {4, 8}) {
            made[0].devices[0].cards.push_back(
                replay("a card of " + std::to_string(gib) + " GiB", 0, kGiB));
            made[0].devices[0].cards.back().total_bytes = gib * kGiB;
        }
        std::string text;
        for (const std::string& line : lines_of(job_of(made))) {
            text += line.starts_with("  card ") ? line : "";
        }
        return text;
    };
    CHECK(card_lines(2 * kGiB) ==
          "  card       a card of 3 GiB is enough for the recorded runs, without a replay (at "
          "most: less may do)");
    CHECK(card_lines(6 * kGiB) ==
          "  card       on a card of 4 GiB all fit (exact; replayed on rank 0, which stands for 2 "
          "processes); a card of 7 GiB is enough for the recorded runs, without a replay (at "
          "most: less may do)");
}

TEST_CASE("a card and a setting that only replays would show are called unknown, with the reason") {
    std::vector<ProcessSummary> made = ranks(3);
    fail(&made[2], 5'000'000'000);
    const auto lines = [&made] {
        std::string text;
        for (const std::string& line : lines_of(job_of(made))) {
            text +=
                line.starts_with("  card ") || line.starts_with("  setting ") ? line + "\n" : "";
        }
        return text;
    };
    for (ProcessSummary& process : made) {
        process.path.clear();
        process.devices[0].blocks_are_pool_blocks = true;
    }
    const std::string why =
        "not known without replays of ranks 0-1 (only a summary without such a replay: give the "
        "trace), rank 2 (a long trace: give it alone)";
    made[2].path = "rank2.ftrace";
    made[2].events = kLongTrace + 1;
    const std::string needs = "; the pool of rank 0 needs at least 1.9 GiB (its peak)";
    CHECK(lines() == "  card       " + why + needs + "\n  setting    " + why + "\n");
    made[2].events = 10;
    for (ProcessSummary& process : made) {
        process.path = "x.ftrace";  // --no-whatif: nobody asked
    }
    CHECK(lines().empty());
    made[2].replayed = true;
    made[2].devices[0].settings = {replay("default settings", 1, kGiB)};
    made[2].devices[0].settings[0].recorded = true;
    CHECK(lines() ==
          "  card       not known without replays of ranks 0-1 (at most four groups are replayed)" +
              needs + "\n"
          "  setting    no setting that was replayed helps all\n");
    made[0].replayed = true;
    CHECK(lines() ==
          "  card       none that was replayed is known to be enough for all" + needs +
              ": `fraganalyze whatif TRACE` scans more sizes\n"
          "  setting    no setting that was replayed helps all\n");
    made[0].devices[0].blocks_are_pool_blocks = made[1].devices[0].blocks_are_pool_blocks =
        made[2].devices[0].blocks_are_pool_blocks = false;
    made[0].replayed = made[2].replayed = false;
    CHECK(lines() == "  card       not known: no process has a pool that can be replayed\n");
}

TEST_CASE("where no card is known to be enough, the view says what is needed at least") {
    std::vector<ProcessSummary> made = ranks(3);
    fail(&made[1], 5'000'000'000);
    made[1].analysed = made[1].replayed = made[0].replayed = true;
    for (ProcessSummary& process : made) {
        process.devices[0].blocks_are_pool_blocks = true;
    }
    made[1].devices[0].settings = {replay("default settings", 1, kGiB)};
    made[1].devices[0].settings[0].recorded = true;
    made[1].devices[0].failures = {{.time_ns = 5'000'000'000,
                                    .requested_bytes = kGiB,
                                    .allocated_bytes = 3 * kGiB / 2,
                                    .verdict = "too_large"}};
    FailureSummary& failure = made[1].devices[0].failures[0];
    const auto card = [&made] {
        for (const std::string& line : lines_of(job_of(made))) {
            if (line.starts_with("  card ")) {
                return line;
            }
        }
        return std::string();
    };
    const std::string none = "  card       none that was replayed is known to be enough for all; ";
    const std::string scan = ": `fraganalyze whatif TRACE` scans more sizes";
    CHECK(card() == none +
                        "the pool of rank 1 needs at least 2.5 GiB (allocated at the failure, plus "
                        "the request)" +
                        scan);
    failure.forecast_card_bytes = 5 * kGiB;
    CHECK(card() == none +
                        "the pool of rank 1 needs at least 2.5 GiB (allocated at the failure, plus "
                        "the request), the rest of the step of rank 1 a card of about 5 GiB "
                        "(estimate)" +
                        scan);
    const auto json = nlohmann::json::parse(job_json("", job_of(made), view_of(job_of(made))));
    CHECK(json["needed"]["pool_bytes"] == 5 * kGiB / 2);
    CHECK(json["needed"]["index"] == 1);
    CHECK(json["needed"]["at_failure"] == true);
    CHECK(json["needed"]["forecast_card_bytes"] == 5 * kGiB);
    CHECK(json["needed"]["forecast_index"] == 1);
    // A process that got past the out-of-memory did not need the request.
    made[1].devices[0].near_end_oom_ns = std::nullopt;
    made[1].end.code = 0;
    CHECK(card() == none + "the pool of rank 0 needs at least 1.9 GiB (its peak)" + scan);
    // Without what was allocated at the failure, only its peak is known.
    fail(&made[1], 5'000'000'000);
    failure.allocated_bytes = 0;
    made[1].devices[0].run.peak_allocated = 2 * kGiB;
    failure.forecast_card_bytes = 0;
    CHECK(card() == none + "the pool of rank 1 needs at least 2 GiB (its peak)" + scan);
    // A card on which all get past the failure may be too small for the rest of the step.
    failure.forecast_card_bytes = 5 * kGiB;
    made[0].replayed = made[2].replayed = false;
    made.erase(made.begin() + 2);
    made[0].replayed = true;
    for (ProcessSummary& process : made) {
        process.devices[0].cards = {replay("a card of 4 GiB", 0, kGiB)};
        process.devices[0].cards[0].total_bytes = 4 * kGiB;
    }
    made[1].devices[0].cards[0].gets_past = true;
    CHECK(card() ==
          "  card       on a card of 4 GiB all get past the out-of-memory, later requests are "
          "unknown (exact; replayed on ranks 0-1); the rest of the step of rank 1 is forecast to "
          "need a card of about 5 GiB (estimate)");
}

TEST_CASE("a job of which nothing can be read has no table") {
    Job job;
    job.unreadable = {{"a.ftrace", "a.ftrace: is not a trace"}};
    CHECK(lines_of(job) == std::vector<std::string>{"unreadable  a.ftrace: is not a trace", ""});
}

TEST_CASE("a setting with which the failed step is forecast to fail comes after the others") {
    std::vector<ProcessSummary> made = ranks(2);
    for (ProcessSummary& process : made) {
        fail(&process, 5'000'000'000);
        process.replayed = true;
        process.devices[0].settings = {replay("A", 0, 4 * kGiB),
                                       replay("B", 0, 5 * kGiB),
                                       replay("default settings", 1, 6 * kGiB)};
        process.devices[0].settings[0].gets_past = process.devices[0].settings[1].gets_past = true;
        process.devices[0].settings[2].recorded = true;
    }
    const auto setting = [&made](std::optional<bool> a, std::optional<bool> b) {
        for (ProcessSummary& process : made) {
            process.devices[0].settings[0].rest_fits = a;
            process.devices[0].settings[1].rest_fits = b;
        }
        const Job job = job_of(made);
        const JobView view = view_of(job);
        REQUIRE(view.setting);
        CHECK(view.setting->only_past_failure);
        for (const std::string& line : lines_of(job)) {
            if (contains(line, " no out-of-memory (")) {
                return view.setting->name + line.substr(line.rfind("; "));
            }
        }
        return view.setting->name;
    };
    CHECK(setting(std::nullopt, std::nullopt) == "A; later requests are not in the trace");
    CHECK(setting(true, true) == "A; the rest of the step is forecast to fit (estimate)");
    CHECK(setting(false, true) == "B; the rest of the step is forecast to fit (estimate)");
    CHECK(setting(false, std::nullopt) == "B; later requests are not in the trace");
    CHECK(setting(false, false) == "A; the rest of the step is forecast to fail (estimate)");
}

TEST_CASE("processes of one card are added up on one clock, at the first out-of-memory") {
    std::vector<ProcessSummary> made = ranks(2);
    ProcessSummary server = rank_of(7, 3 * kGiB);
    server.place.rank = -1;
    server.last_event_ns = 2'000'000'000;
    made[1].devices[0].uuid = server.devices[0].uuid = "GPU-shared";
    fail(&made[1], 5'000'000'000);
    made.push_back(server);
    const Job job = job_of(made);
    const std::vector<SharedCard> shared = view_of(job).shared;
    REQUIRE(shared.size() == 1);
    CHECK(shared[0].uuid == "GPU-shared");
    CHECK(shared[0].at_failure);
    CHECK(shared[0].sum_bytes == 5 * kGiB);
    REQUIRE(shared[0].users.size() == 2);
    CHECK(job.processes[shared[0].users[0].process].pid == 107);
    CHECK(shared[0].users[0].bytes == 3 * kGiB);
    CHECK(shared[0].users[0].after_last_event_ns > 2'900'000'000);
    CHECK(shared[0].users[1].after_last_event_ns == 0);
    // The same card of another host is another card.
    made[2].place.host = "node2";
    CHECK(view_of(job_of(made)).shared.empty());
    // So are virtual cards of another set, and those that are not shared.
    made[2].place.host = "node1";
    made[1].card_set = made[2].card_set = "lab";
    CHECK(view_of(job_of(made)).shared.size() == 1);
    made[2].card_set = "other";
    CHECK(view_of(job_of(made)).shared.empty());
    made[1].card_set = made[2].card_set = "-";
    CHECK(view_of(job_of(made)).shared.empty());
}

TEST_CASE("a failure because of another process names that process, its line and its phase") {
    std::vector<ProcessSummary> made = ranks(2);
    ProcessSummary server = rank_of(7, 3 * kGiB);
    server.place.rank = -1;
    server.program = "python3 serve.py";
    made[1].devices[0].uuid = server.devices[0].uuid = "GPU-shared";
    fail(&made[1], 5'000'000'000);
    made[1].devices[0].failures = {{.verdict = "outside_pool", .why = "others hold it"}};
    made.push_back(server);
    const Job job = job_of(made);
    JobView view = view_of(job);
    REQUIRE(view.shared.size() == 1);
    for (CardUser& user : view.shared[0].users) {
        if (job.processes[user.process].pid == 107) {
            user.moment = {.bytes = 3 * kGiB,
                           .allocated_bytes = kGiB,
                           .lines = {{"serve.py:12 grow", kGiB, 4}},
                           .phase = "decode",
                           .has_phases = true,
                           .idle_ns = 2'500'000'000};
        }
    }
    const Terminal plain(1, ColorChoice::kNever);
    const std::string expected =
        "  holders    pid 107 (python3 serve.py) 3 GiB, 2 GiB of it not in use, most in "
        "serve.py:12 grow (1 GiB in 4 blocks), in phase decode, idle for 2.5 s\n";
    CHECK(contains(job_text(job, view, plain), expected));
    // Other processes are no reason for a failure by fragmentation.
    made[1].devices[0].failures[0].verdict = "stitchable";
    const Job other = job_of(made);
    CHECK_FALSE(contains(job_text(other, view_of(other), plain), "  holders "));
}

TEST_CASE("a process that has only a context on a full card is named with its size") {
    std::vector<ProcessSummary> made = ranks(2);
    ProcessSummary idle = rank_of(7);
    idle.place.rank = -1;
    idle.program = "python3 watch.py";
    idle.devices.clear();
    idle.contexts = {{.device = 2,
                      .uuid = "GPU-shared",
                      .bytes = 500 * kMiB,
                      .measured = "NVML before and after its creation",
                      .begin_ns = 1'000'000'000}};
    made[1].devices[0].uuid = "GPU-shared";
    fail(&made[1], 5'000'000'000);
    made[1].devices[0].failures = {{.verdict = "outside_pool", .why = "others hold it"}};
    made[1].contexts = {{.uuid = "GPU-shared", .bytes = 400 * kMiB}};
    made.push_back(idle);
    ProcessSummary& other = made.back();
    const auto holders = [&made] {
        for (const std::string& line : lines_of(job_of(made))) {
            if (contains(line, "  holders ")) {
                return line.substr(std::string("  holders    ").size());
            }
        }
        return std::string();
    };
    CHECK(holders() ==
          "pid 107 (python3 watch.py) only its context, 500 MiB (measured: NVML before and after "
          "its creation)");
    const Job job = job_of(made);
    const auto json = nlohmann::json::parse(job_json("", job, view_of(job)))["shared_cards"];
    REQUIRE(json.size() == 1);
    CHECK(json[0]["users"].size() == 1);  // its own context is not listed beside its memory
    REQUIRE(json[0]["only_contexts"].size() == 1);
    CHECK(json[0]["only_contexts"][0]["bytes"] == 500 * kMiB);
    CHECK(json[0]["only_contexts"][0]["device"] == 2);
    CHECK(json[0]["only_contexts"][0]["nothing_else"] == true);
    CHECK(json[0]["only_contexts"][0]["virtual"] == false);
    other.contexts[0].measured = "total less free after the first allocation: others are in it";
    CHECK(contains(holders(), " only its context, at most 500 MiB (measured: total less free"));
    other.contexts[0].bytes = 0;
    CHECK(holders() == "pid 107 (python3 watch.py) only its context (size unknown)");
    other.contexts[0].bytes = 500 * kMiB;
    other.card_set = made[1].card_set = "lab";
    CHECK(contains(holders(), "500 MiB (assumption: the context of a virtual card)"));
    // Events of its trace are missing: it may have more.
    other.events_lost = 1;
    CHECK(contains(holders(), "its context, and nothing in its pool, at most 500 MiB"));
    other.events_lost = 0;
    // A process that may have ended since its last event, and one that was seen to have ended.
    other.last_event_ns = 2'000'000'000;
    CHECK(contains(holders(), "), its last event "));
    CHECK(contains(holders(), " before: it may have ended since"));
    kill(&other, SIGKILL);
    other.killed = {.alive_ns = 6'000'000'000, .seen_ns = 6'100'000'000};
    CHECK_FALSE(contains(holders(), "may have ended"));
    CHECK(contains(holders(), "only its context"));
    other.killed = {.alive_ns = 3'000'000'000, .seen_ns = 3'100'000'000};
    CHECK(holders().empty());
    other.killed = {};
    // The context was not there yet, or no longer.
    other.contexts[0].begin_ns = 5'500'000'000;
    CHECK(holders().empty());
    other.contexts[0].begin_ns = 1'000'000'000;
    other.contexts[0].end_ns = 4'000'000'000;
    CHECK(holders().empty());
}

TEST_CASE("processes with nothing but contexts share a card when the last one begins") {
    std::vector<ProcessSummary> made = ranks(2);
    for (ProcessSummary& process : made) {
        process.devices.clear();
        process.contexts = {{.uuid = "GPU-shared", .bytes = 500 * kMiB, .begin_ns = 1000}};
    }
    const Job job = job_of(made);
    const JobView view = view_of(job);
    REQUIRE(view.shared.size() == 1);
    CHECK(view.shared[0].users.empty());
    CHECK(view.shared[0].only_contexts().size() == 2);
    CHECK(view.shared[0].at_unix_ns == made[1].start_unix_ns + 1000);
    const std::string text = job_text(job, view, Terminal(1, ColorChoice::kNever));
    CHECK(contains(text, "when its last context began"));
    CHECK(contains(text, "rank 1 only its context, 500 MiB (measured)"));
}

TEST_CASE("the sum of what processes of one card reserved is never less than at any time") {
    Random random(18);
    for (int round = 0; round < 20; ++round) {
        std::vector<ProcessSummary> made = ranks(40);
        for (ProcessSummary& process : made) {
            ProcessDevice& device = process.devices[0];
            device.uuid = "GPU-shared";
            process.start_unix_ns += below(random, 5'000'000'000);
            device.peak_time_ns = 0;
            for (std::uint16_t& bin : device.curve.reserved) {
                bin = static_cast<std::uint16_t>(below(random, 2000));
            }
            if (below(random, 4) == 0) {
                kill(&process, SIGKILL);
                process.last_event_ns = 9'500'000'000;
                process.killed.seen_ns = 10'000'000'000 + below(random, 3'000'000'000);
            }
            if (below(random, 8) == 0) {
                device.curve = {};  // only its peak is known
            }
        }
        const Job job = job_of(made);
        const std::vector<SharedCard> shared = view_of(job).shared;
        REQUIRE(shared.size() == 1);
        CHECK(shared[0].at_most);
        std::uint64_t users = 0;
        for (const CardUser& user : shared[0].users) {
            users += user.bytes;
        }
        CHECK(shared[0].sum_bytes == users);
        std::uint64_t most = 0;
        for (std::uint64_t at = 1'000'000'000; at < 25'000'000'000; at += 50'000'000) {
            std::uint64_t sum = 0;
            for (const ProcessSummary& process : job.processes) {
                const ProcessDevice& device = process.devices[0];
                const std::uint64_t own = at - std::min(at, process.start_unix_ns);
                const bool there =
                    at >= process.start_unix_ns && own < process.killed.seen_ns.value_or(~0ull);
                const std::size_t bin =
                    device.curve.bin_ns == 0
                        ? 0
                        : std::min<std::size_t>(own / device.curve.bin_ns,
                                                device.curve.reserved.size() - 1);
                sum += !there                     ? 0
                       : device.curve.bin_ns == 0 ? peak_of(device)
                                                  : device.curve.reserved[bin] * kMiB;
            }
            most = std::max(most, sum);
        }
        CHECK(shared[0].sum_bytes >= most);
    }
    // Lost events make it an estimate.
    std::vector<ProcessSummary> made = ranks(2);
    made[0].devices[0].uuid = made[1].devices[0].uuid = "GPU-shared";
    CHECK(contains(job_text(job_of(made), view_of(job_of(made)), Terminal(1, ColorChoice::kNever)),
                   "pools had reserved (without contexts) at most 4 GiB of 24 GiB: "));
    made[0].events_lost = 1;
    CHECK(contains(job_text(job_of(made), view_of(job_of(made)), Terminal(1, ColorChoice::kNever)),
                   "(without contexts) 4 GiB of 24 GiB (estimate: events of some traces are "
                   "missing): "));
}

TEST_CASE("groups of thousands of different processes are found quickly and are complete") {
    Random random(1);
    std::vector<ProcessSummary> made;
    for (int rank = 0; rank < 5000; ++rank) {
        made.push_back(rank_of(rank, kGiB + below(random, 60 * kGiB)));
    }
    const Job job = job_of(made);
    const JobView view = view_of(job);
    CHECK(view.groups.size() <= 64);
    std::size_t members = view.not_compared.size();
    for (const ProcessGroup& group : view.groups) {
        members += group.members.size();
        // No group has processes that are not alike.
        const std::uint64_t peak = peak_of(job.processes[group.front()]);
        CHECK(group.most_reserved - peak <= group.most_reserved / 20);
        CHECK(peak - group.least_reserved <= peak / 20);
    }
    CHECK(members == 5000);
    CHECK(lines_of(job).size() < 100);
}

TEST_CASE("processes that are like none of 64 groups are in no group, and stand for nothing") {
    std::vector<ProcessSummary> made;
    for (int rank = 0; rank < 70; ++rank) {
        // Each peak is 7 % above the one before.
        const double reserved = static_cast<double>(2 * kGiB) * std::pow(1.07, rank);
        made.push_back(rank_of(rank, static_cast<std::uint64_t>(reserved)));
        made.back().devices[0].holders = {{"line " + std::to_string(rank), kGiB, 1}};
        made.back().replayed = true;
        made.back().devices[0].settings = {replay("other", 0, kMiB)};
        made.back().devices[0].settings.push_back(replay("now", 0, 9 * kGiB));
        made.back().devices[0].settings[1].recorded = true;
        made.back().devices[0].cards = {replay("card", 0, kMiB)};
        made.back().devices[0].cards[0].total_bytes = 1024 * kGiB;
    }
    const Job job = job_of(made);
    const JobView view = view_of(job);
    CHECK(view.groups.size() == 64);
    CHECK(view.not_compared.size() == 6);
    REQUIRE(view.card);
    CHECK(view.card->replayed_bytes == 0);  // not all groups were replayed
    const std::vector<std::string> lines = lines_of(job);
    CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
        return contains(line, "6 more processes like none of these groups, not compared");
    }));
}

TEST_CASE("thousands of generations and processes of one card are viewed quickly") {
    std::vector<ProcessSummary> made;
    for (int rank = 0; rank < 20'000; ++rank) {
        ProcessSummary process = rank_of(rank);
        process.place.generation = rank;
        process.devices[0].uuid = "GPU-" + std::to_string(rank / 256);
        if (rank < 10'000) {
            fail(&process, 5'000'000'000);
        }
        made.push_back(process);
    }
    const Job job = job_of(made);
    const JobView view = view_of(job);
    CHECK(lines_of(job).size() > 10'000);  // one for each failure
    REQUIRE(view.generations.size() == 20'000);
    CHECK(std::all_of(view.generations.begin(), view.generations.end(), [](const auto& one) {
        return one.processes == 1 && (!one.first || one.first->of == 1);
    }));
    CHECK(view.shared.size() == 79);
}

TEST_CASE("a process whose failures are unknown has no count of them, and no highest peak") {
    std::vector<ProcessSummary> made = ranks(3);
    RunFigures& run = made[1].devices[0].run;
    forget_segments(&run);
    run.ooms = kUnknown64;
    made[1].import = "RMM log";
    made[2] = rank_of(2, 4 * kGiB);
    const Job job = job_of(made);
    CHECK(by_interest(job).front() == 2);  // the highest peak
    const std::vector<std::string> lines = lines_of(job);
    const auto row = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
        return contains(line, "RMM log");
    });
    REQUIRE(row != lines.end());
    INFO(*row);
    CHECK(contains(*row, "1.9 GiB    unknown unknown unknown  RMM log"));
    const auto json = nlohmann::json::parse(job_json("", job, view_of(job)));
    CHECK(json["processes"][1]["ooms"].is_null());
    CHECK(json["processes"][1]["peak_reserved_bytes"].is_null());
    CHECK(json["processes"][0]["ooms"] == 0);
    CHECK(json["card"].is_null());  // it may have failed, so no card is known to be enough
}

TEST_CASE("the JSON of a job names processes by their index") {
    std::vector<ProcessSummary> made = ranks(3);
    fail(&made[2], 5'000'000'000);
    const Job job = job_of(made);
    const auto json = nlohmann::json::parse(job_json("folder", job, view_of(job)));
    CHECK(json["first_failure"]["index"] == 2);
    CHECK(json["groups"].size() == 2);
    CHECK(json["processes"].size() == 3);
    CHECK(json["card"].is_null());
    const auto empty = nlohmann::json::parse(job_json("", Job(), view_of(Job())));
    CHECK(empty["first_failure"].is_null());
    CHECK(empty["generations"].empty());
}
