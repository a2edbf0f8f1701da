// The view of a job as a whole: its names, its table, its JSON, and its cost.
#include "analyzer/analysis/job/job_view.h"

#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/json/job_json.h"
#include "analyzer/report/text/job_names.h"
#include "tests/unit/job/job_lines.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

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
    CHECK(name_of(job.processes[2]).ends_with("(earlier program of rank 1)"));
    CHECK(view_of(job).generations[0].processes == 2);
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

TEST_CASE("a job of which nothing can be read has no table") {
    Job job;
    job.unreadable = {{"a.ftrace", "a.ftrace: is not a trace"}};
    CHECK(lines_of(job) == std::vector<std::string>{"unreadable  a.ftrace: is not a trace", ""});
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
