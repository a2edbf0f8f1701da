// Groups of equal processes, and what makes others differ.
#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/json/job_json.h"
#include "tests/unit/job/job_lines.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

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
              .starts_with(
                  "  differs    rank 2: peak 4 GiB, 2 GiB more than ranks 0-1; memory on 2 devices "
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

TEST_CASE("a rank that used no device differs from the ranks that did") {
    std::vector<ProcessSummary> made = ranks(3);
    made[2].devices.clear();
    CHECK(contains(line_with(job_of(made), "  differs "),
                   "differs    rank 2: peak 0 B, 2 GiB less than ranks 0-1; memory on 0 devices "
                   "instead of 1"));
    made[1].devices.clear();
    CHECK(contains(line_with(job_of(made), "  equal "), "ranks 1-2 (2): peak 0 B"));
    // A helper without a device says nothing.
    made[1].place.rank = made[2].place.rank = -1;
    CHECK(line_with(job_of(made), "  differs ").empty());
    made[0].devices.clear();
    CHECK(view_of(job_of(made)).groups.empty());
}

TEST_CASE("a damaged recording is compared with whole ones, and its peak is a lower bound") {
    std::vector<ProcessSummary> made = ranks(3);
    made[0].damaged = made[1].damaged = true;
    made[0].devices[0].run.peak_reserved = made[1].devices[0].run.peak_reserved = kGiB;
    CHECK(contains(line_with(job_of(made), "  equal "), "ranks 0-1 (2): peak at least 1 GiB"));
    CHECK(contains(line_with(job_of(made), "  differs "),
                   "differs    ranks 0-1: peak at least 1 GiB, in the recorded part 1 GiB less "
                   "than rank 2"));
    // In one group, a whole recording stands for all.
    made[0].devices[0].run.peak_reserved = made[1].devices[0].run.peak_reserved = 2 * kGiB;
    const auto groups = view_of(job_of(made)).groups;
    REQUIRE(groups.size() == 1);
    CHECK(groups[0].members == std::vector<std::size_t>{2, 0, 1});
    CHECK(contains(line_with(job_of(made), "  equal "), "ranks 0-2 (3): peak at least 2 GiB"));
}
