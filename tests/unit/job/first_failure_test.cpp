// The first failure of a job: which one it is, when it happened, and what a later one means.
#include "analyzer/analysis/job/first_failure.h"

#include "analyzer/analysis/job/generation_ends.h"
#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/json/job_json.h"
#include "tests/unit/job/job_lines.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <fmt/format.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

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

TEST_CASE("a request that a pool of the program could not serve is no silence about failures") {
    std::vector<ProcessSummary> made = {rank_of(0), rank_of(1), rank_of(2)};
    CHECK(line_with(job_of(made), "pools").empty());
    made[1].pool_failures = 3;
    CHECK(lines_of(job_of(made))[0] ==
          "no device is known to have run out of memory in 3 processes");
    CHECK(line_with(job_of(made), "pools") ==
          "  pools      pools of the program's own could not serve 3 requests in rank 1: "
          "fraganalyze TRACE says why");
    fail(&made[2], 1'000'000'000);
    CHECK(lines_of(job_of(made))[0].starts_with("rank 2 of 8 ran out of memory first"));
    CHECK_FALSE(line_with(job_of(made), "pools").empty());
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
        if (killed) {
            CHECK(contains(lines_of(job_of(made))[2],
                           "it was last known to run 950 ms before it, and its end was seen 900 ms "
                           "before it, but clocks of hosts may differ"));
        }
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

TEST_CASE("a cut trace is named, and is no first failure without its end") {
    std::vector<ProcessSummary> made = ranks(3);
    fail(&made[0], 2'000'000'000);
    made[1].damaged = true;
    made[1].end = end_despite_damage({.ending = Ending::kKilled}, {});
    made[1].last_event_ns = 500'000'000;
    CHECK(made[1].end.unknown());
    Job job = job_of(made);
    CHECK(first_failure(job)->process == 0);
    CHECK(line_with(job, "  damaged    ") ==
          "  damaged    the trace of rank 1 is cut off or damaged: its peaks, counts and held "
          "memory are lower bounds, and out-of-memories in the missing part are not known; how "
          "rank 1 "
          "ended is not known");
    CHECK(line_with(job, "  partial    ").empty());
    CHECK(line_with(job, "--absorb").empty());
    CHECK(contains(line_with(job, "  others     "),
                   "rank 1 may have failed first: it was last known to run 1.5 s before it"));
    CHECK(made[1].is_partial());
    const auto json = nlohmann::json::parse(job_json("", job, view_of(job)));
    CHECK(json["processes"][1]["damaged"] == true);
    CHECK(json["processes"][1]["complete"] == false);
    CHECK(json["processes"][2]["damaged"] == false);
    // No failure is known without the out-of-memory.
    made[0] = rank_of(0);
    CHECK_FALSE(first_failure(job_of(made)));
    // A signal or the ring tells that it died.
    for (const KilledBetween& killed :
         {KilledBetween{.alive_ns = 1}, KilledBetween{.seen_ns = 1}}) {
        const ProcessEnd end = {.ending = Ending::kKilled};
        CHECK(end_despite_damage(end, killed).failed() == killed.alive_ns.has_value());
    }
    made[1].end = end_despite_damage({.ending = Ending::kKilled, .signal = SIGKILL}, {});
    CHECK(first_failure(job_of(made))->process == 1);
    CHECK_FALSE(contains(line_with(job_of(made), "  damaged    "), "how rank 1 ended"));
    // Damage before the end mark.
    made[1].end = end_despite_damage({.ending = Ending::kNormal, .code = 0}, {});
    CHECK_FALSE(first_failure(job_of(made)));
    CHECK_FALSE(line_with(job_of(made), "  damaged    ").empty());
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
          "  others     2 without a known failure; 1 of the others ran out of memory earlier and "
          "got past it");
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

TEST_CASE(
    "an out-of-memory is no first failure if its rank outlived another failure and ended well") {
    std::vector<ProcessSummary> made = ranks(3);
    fail(&made[0], 1'000'000'000, 0);
    made[0].devices[0].final_oom_ns = made[0].devices[0].first_oom_ns;
    made[1].end.code = 3;
    made[1].end_ns = made[1].last_event_ns = 4'000'000'000;
    made[0].end_ns = 4'600'000'000;
    CHECK(lines_of(job_of(made))[0] ==
          "rank 1 of 3 failed first: exit code 3, 4 s after the job began");
    CHECK(
        line_with(job_of(made), "others") ==
        "  others     2 without a known failure; 1 of the others ran out of memory earlier and got "
        "past it");
    // The other one may have failed because this one was about to end.
    made[0].end_ns = 4'300'000'000;
    CHECK(lines_of(job_of(made))[0].starts_with("rank 0 of 3 ran out of memory first"));
    made[0].end_ns = 3'000'000'000;
    CHECK(lines_of(job_of(made))[0].starts_with("rank 0 of 3 ran out of memory first"));
    // Clocks of hosts differ.
    made[0].end_ns = 5'400'000'000;
    made[0].place.host = "node2";
    CHECK(first_failure(job_of(made))->process == 0);
    made[0].end_ns = 5'600'000'000;
    CHECK(first_failure(job_of(made))->process == 1);
    // Machines of one name have clocks of their own.
    made[0].end_ns = 5'400'000'000;
    made[0].place.host = made[1].place.host;
    made[0].place.boot_id = "another";
    CHECK(first_failure(job_of(made))->process == 0);
    made[0].place.boot_id.clear();
    CHECK(first_failure(job_of(made))->process == 1);
    // An end at an unknown time, by SIGTERM, or of a process that is no rank decides nothing.
    made[0].end_ns = 5'600'000'000;
    made[0].place.host = "node1";
    made[1].end_ns = std::nullopt;
    CHECK(first_failure(job_of(made))->process == 0);
    made[1].end_ns = 4'000'000'000;
    made[1].place.rank = -1;
    CHECK(first_failure(job_of(made))->process == 0);
    made[1].place.rank = 1;
    kill(&made[1], SIGTERM);
    CHECK(first_failure(job_of(made))->process == 0);
    // If another out-of-memory ended its rank, that one is the first failure.
    fail(&made[1], 4'000'000'000);
    made[1].end_ns = 4'100'000'000;
    CHECK(lines_of(job_of(made))[0] ==
          "rank 1 of 3 failed first: out of memory, 4 s after the job began");
}

TEST_CASE("a process that became another program by exec counts once") {
    std::vector<ProcessSummary> made = ranks(3);
    made[2].place.rank = 0;
    made[2].pid = made[0].pid;
    made[0].place.process = made[2].place.process = {.pid = made[0].pid, .start_ticks = 5};
    made[2].start_unix_ns = 500'000'000;
    made[2].end = {.ending = Ending::kExec};
    for (ProcessSummary& process : made) {
        process.place.world_size = 2;
    }
    CHECK(lines_of(job_of(made))[0] == "no known failure in 2 processes");
    made[2].devices[0].first_oom_ns = made[2].devices[0].final_oom_ns = 100;
    made[2].devices[0].run.ooms = 1;
    // Its earlier program is the first failure.
    CHECK(lines_of(job_of(made))[0].starts_with(
        "pid 100 (earlier program of rank 0) of 2 processes"));
    CHECK(line_with(job_of(made), "others") == "  others     1 without a known failure");
    // Its later program is.
    made[0].end.code = 6;
    made[0].end_ns = made[0].last_event_ns;
    CHECK(lines_of(job_of(made))[0].starts_with("rank 0 of 2 failed first: exit code 6"));
    CHECK(
        line_with(job_of(made), "others") ==
        "  others     1 without a known failure; the same process ran out of memory as an earlier "
        "program, and got past it");
    // Another rank is.
    std::swap(made[0].end, made[1].end);
    made[1].end_ns = made[1].last_event_ns;
    CHECK(lines_of(job_of(made))[0].starts_with("rank 1 of 2 failed first: exit code 6"));
    CHECK(
        line_with(job_of(made), "others") ==
        "  others     1 without a known failure; 1 of the others ran out of memory earlier and got "
        "past it");
    CHECK(generation_ends(job_of(made))[0].processes == 2);
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
          "  others     1 without a known failure; 1 of the others ran out of memory earlier and "
          "got past it");
    made[0].devices[0].final_oom_ns = made[0].devices[0].first_oom_ns;
    CHECK(contains(lines_of(job_of(made))[0],
                   "rank 0 of 2 ran out of memory first, and then ended normally"));
    CHECK(contains(lines_of(job_of(made))[1], "1 of the others failed otherwise: 1 SIGABRT"));
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
    // Machines with one name are told apart by their boot, containers of one machine are not.
    made[1].devices[0].near_end_oom_ns = 5'500'000'000;
    made[1].place.host = made[0].place.host;
    made[0].place.boot_id = "a";
    made[1].place.boot_id = "b";
    CHECK(view_of(job_of(made)).generations[0].as_early == 1u);
    made[1].place.host = "container";
    made[1].place.boot_id = "a";
    CHECK_FALSE(view_of(job_of(made)).generations[0].as_early);
}
