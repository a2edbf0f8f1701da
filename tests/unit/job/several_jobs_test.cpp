// Several jobs, and runs of one job, in one folder: which process belongs to which, and in which
// order processes are shown.
#include "analyzer/analysis/job/several_jobs.h"

#include "analyzer/report/json/job_json.h"
#include "analyzer/report/text/job_text.h"
#include "tests/unit/job/job_lines.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

// A process that runs from one second to another. Its id tells it apart.
ProcessSummary between(int rank, std::uint32_t pid, std::uint64_t begin_s, std::uint64_t end_s) {
    ProcessSummary made = rank_of(std::max(rank, 0));
    made.place.rank = rank;
    made.pid = pid;
    made.file = "train." + std::to_string(pid) + ".ftrace";
    made.start_unix_ns = begin_s * kSecondNs;
    made.end_ns = made.last_event_ns = (end_s - begin_s) * kSecondNs;
    return made;
}

// The process ids of each run, sorted.
std::vector<std::vector<std::uint32_t>> runs_of(std::vector<ProcessSummary> made) {
    std::vector<std::vector<std::uint32_t>> runs;
    for (const OneJob& one : jobs_in(job_of(std::move(made)))) {
        runs.emplace_back();
        for (const ProcessSummary& process : one.job.processes) {
            runs.back().push_back(process.pid);
        }
        std::sort(runs.back().begin(), runs.back().end());
    }
    return runs;
}

using Runs = std::vector<std::vector<std::uint32_t>>;

}  // namespace

TEST_CASE("a process without a rank that lives through two runs belongs to the first") {
    CHECK(
        runs_of({between(0, 10, 100, 200), between(-1, 11, 100, 900), between(0, 20, 300, 400)}) ==
        Runs{{10, 11}, {20}});
}

TEST_CASE("a process without a rank belongs to the run in which it began") {
    const auto run_with = [](std::uint64_t begin_s) {
        const Runs runs = runs_of({between(0, 10, 100, 200),
                                   between(0, 20, 300, 400),
                                   between(0, 30, 500, 600),
                                   between(-1, 99, begin_s, begin_s + 1)});
        REQUIRE(runs.size() == 3);
        const auto found = std::find_if(runs.begin(), runs.end(), [](const auto& run) {
            return std::find(run.begin(), run.end(), 99) != run.end();
        });
        return found - runs.begin();
    };
    CHECK(run_with(50) == 0);
    CHECK(run_with(100) == 0);
    CHECK(run_with(199) == 0);
    CHECK(run_with(250) == 1);  // between two runs: it prepares the second one
    CHECK(run_with(300) == 1);
    CHECK(run_with(399) == 1);
    CHECK(run_with(400) == 2);
    CHECK(run_with(700) == 2);
}

TEST_CASE("runs that overlap in time are kept apart if all ranks begin again") {
    // Rank 1 of the first run hangs for a while.
    const std::vector<ProcessSummary> made = {between(0, 10, 100, 200),
                                              between(1, 11, 100, 310),
                                              between(0, 20, 300, 400),
                                              between(1, 21, 320, 400)};
    CHECK(runs_of(made) == Runs{{10, 11}, {20, 21}});
    // The view is the same for each order of the input.
    std::vector<ProcessSummary> reversed = made;
    std::reverse(reversed.begin(), reversed.end());
    CHECK(runs_of(reversed) == runs_of(made));
    // The rank begins again while its earlier process runs: which is which is not known.
    std::vector<ProcessSummary> together = made;
    together[1] = between(1, 11, 100, 330);
    CHECK(runs_of(together).empty());
}

TEST_CASE("runs that overlap are told apart by their starts if each has all ranks") {
    const auto of_two = [](std::vector<ProcessSummary> made) {
        for (ProcessSummary& process : made) {
            process.place.world_size = 2;
        }
        return made;
    };
    const std::vector<ProcessSummary> made = of_two({between(0, 10, 100, 400),
                                                     between(1, 11, 101, 420),
                                                     between(1, 21, 110, 430),
                                                     between(0, 20, 112, 500)});
    CHECK(runs_of(made) == Runs{{10, 11}, {20, 21}});
    CHECK(line_with(job_of(made), "  runs ").starts_with("  runs       ranks 0 (pid 20)") == false);
    // One rank began again later than the other: another run, or a restart.
    std::vector<ProcessSummary> apart = made;
    apart[3].start_unix_ns += 60 * kSecondNs;
    CHECK(runs_of(apart).empty());
    CHECK(contains(line_with(job_of(apart), "  runs "),
                   "rank 0 (pid 20), rank 1 (pid 21) began while an earlier process of the same "
                   "rank ran: several runs may overlap here, and they are taken as one"));
    const Job job = job_of(apart);
    CHECK(nlohmann::json::parse(job_json("", job, view_of(job)))["ranks_again"].size() == 2);
    // A rank has no process in the second run.
    CHECK(runs_of({made[0], made[1], made[2]}).empty());
    // A rank that ended before it began again.
    CHECK(
        ranks_again(job_of(of_two({between(0, 10, 100, 200), between(0, 20, 200, 300)}))).empty());
    // Runs that follow each other, two of which overlap.
    std::vector<ProcessSummary> three = made;
    for (ProcessSummary process :
         of_two({between(0, 30, 1000, 1100), between(1, 31, 1000, 1100)})) {
        three.push_back(process);
    }
    CHECK(runs_of(three) == Runs{{10, 11}, {20, 21}, {30, 31}});
}

TEST_CASE("processes of another run on the same card are named with their run") {
    std::vector<ProcessSummary> made = {
        between(0, 10, 100, 400), between(0, 20, 110, 500), between(0, 30, 600, 700)};
    for (ProcessSummary& process : made) {
        process.place.world_size = 1;
        process.devices[0].uuid = "GPU-1";
        process.devices[0].curve.bin_ns = 0;
    }
    fail(&made[1], 50 * kSecondNs);
    made[1].end_ns = 51 * kSecondNs;
    made[1].devices[0].failures = {{.time_ns = 50 * kSecondNs,
                                    .verdict = "outside_pool",
                                    .why = "others hold it",
                                    .culprit = "other processes"}};
    Job job = job_of(made);
    REQUIRE(jobs_in(job).size() == 3);
    CHECK(outside_of(jobs_in(job), 2).empty());
    REQUIRE(keep_job("run-2", &job));
    REQUIRE(job.processes.size() == 1);
    REQUIRE(job.outside.size() == 1);
    CHECK(contains(line_with(job, "holders"), "rank 0 (run-1) at most 2 GiB"));
    CHECK(contains(line_with(job, "same card"), "rank 0 (run-1) at most 2 GiB"));
    const auto shared = nlohmann::json::parse(job_json("", job, view_of(job)))["shared_cards"];
    REQUIRE(shared[0]["users"].size() == 2);
    for (const auto& user : shared[0]["users"]) {
        CHECK(user["index"].is_null() != user["outside"].is_null());
        CHECK((user["outside"].is_null() || user["outside"] == "rank 0 (run-1)"));
    }
    // The name of a process of another run is no name of this one.
    for (const JobRow& row : job_rows(job, view_of(job))) {
        for (const NamedPart& part : ProcessNames(job).parts_of(row)) {
            CHECK((part.processes.empty() || !contains(part.text, "run-1")));
        }
    }
    // Of another job.
    for (ProcessSummary& process : made) {
        process.place.job_id = std::to_string(process.pid);
    }
    job = job_of(made);
    REQUIRE(keep_job("20", &job));
    CHECK(contains(line_with(job, "holders"), "rank 0 (job 10) at most 2 GiB"));
}

TEST_CASE("a rank that is restarted alone belongs to the run of the others") {
    CHECK(runs_of({between(0, 10, 100, 200),
                   between(1, 11, 100, 900),
                   between(2, 12, 100, 900),
                   between(0, 20, 300, 400)})
              .empty());
    // Also if the job runs again later.
    CHECK(runs_of({between(0, 10, 100, 200),
                   between(1, 11, 100, 900),
                   between(0, 20, 300, 400),
                   between(1, 31, 1000, 1100),
                   between(0, 30, 1000, 1100)}) == Runs{{10, 11, 20}, {30, 31}});
}

TEST_CASE("ranks that each run two programs one after the other are two runs") {
    // Rank 1 prepares longer than rank 0.
    CHECK(runs_of({between(0, 10, 100, 200),
                   between(1, 11, 100, 250),
                   between(0, 20, 201, 900),
                   between(1, 21, 251, 900)}) == Runs{{10, 11}, {20, 21}});
}

TEST_CASE("thousands of processes with one rank are divided quickly") {
    std::vector<ProcessSummary> made;
    for (std::uint32_t i = 0; i < 20'000; ++i) {
        made.push_back(between(static_cast<int>(i % 2), 100 + i, 100 + i / 2, 100'000));
    }
    CHECK(runs_of(made).empty());
    for (ProcessSummary& process : made) {
        process.end_ns = process.last_event_ns = kSecondNs / 2;
    }
    CHECK(runs_of(made).size() == 10'000);
}

TEST_CASE("processes have the same order from a folder and from summaries") {
    // Programs before an exec have the process id of the later one.
    std::vector<ProcessSummary> made = {between(-1, 10, 100, 200), between(-1, 10, 200, 300)};
    made[0].file = "train.10.ftrace";
    made[1].file = "sh.10.ftrace";
    for (ProcessSummary& process : made) {
        process.path = "folder/" + process.file;
    }
    const auto files = [](const Job& job) {
        std::vector<std::string> names;
        for (const ProcessSummary& process : job.processes) {
            names.push_back(process.file);
        }
        return names;
    };
    const std::vector<std::string> from_folder = files(job_of(made));
    CHECK(from_folder == std::vector<std::string>{"train.10.ftrace", "sh.10.ftrace"});
    for (ProcessSummary& process : made) {
        process.path.clear();
    }
    CHECK(files(job_of(made)) == from_folder);
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
