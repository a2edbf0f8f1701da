// What became of the processes of each generation, and which ranks have no trace.
#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/json/job_json.h"
#include "tests/unit/job/job_lines.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

TEST_CASE("whether a process of another host died may be unknown") {
    std::vector<ProcessSummary> made = ranks(3);
    made[1].end = {.ending = Ending::kNotRecorded};
    made[1].last_event_ns = 100;
    CHECK(lines_of(job_of(made))[0] == "no known failure in 3 processes");
    CHECK(
        lines_of(job_of(made))[1] ==
        "  others     how rank 1 ended is not recorded (it may still run), and last events may be "
        "missing: `fraganalyze list --absorb` on the same host, in the same container, adds them "
        "if the ring is still there");
    made[2].end = {.ending = Ending::kNormal, .code = 1};
    made[2].end_ns = 200;
    CHECK(contains(lines_of(job_of(made))[1],
                   "rank 1 may have failed first: it was last known to run"));
    // On this host it has ended.
    made[1].end = {.ending = Ending::kKilled};
    CHECK(first_failure(job_of(made))->process == 1);
    CHECK(contains(lines_of(job_of(made))[0],
                   "failed first: died or became a program that is not recorded, at least"));
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
    made[4] = made[5];
    made[4].place.rank = 0;
    made[4].pid = 1100;
    CHECK(line_with(job_of(made), "generation 1: ") ==
          "generation 1: no known failure in 4 processes");
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
