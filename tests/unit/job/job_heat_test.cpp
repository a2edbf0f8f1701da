// Memory of all processes over time, as the page of a job gets it.
#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/page/page_ranks.h"
#include "made_up_job.h"

#include <catch2/catch.hpp>

#include <csignal>

using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

PageData page_of(std::vector<ProcessSummary> processes) {
    PageData page;
    const Job job = job_of(std::move(processes));
    add_ranks(job, view_of(job), {}, &page);
    return page;
}

// "###??." for the state of a process in each of the first seconds: runs, not known, does not run.
std::string states(const PageData& page, std::size_t row, std::uint64_t seconds) {
    std::string text;
    for (std::uint64_t i = 0; i < seconds; ++i) {
        const std::uint64_t column = (i * kSecond + kSecond / 2) / page.heat.column_ns;
        const int value = page.ranks[row].reserved_heat.at(column);
        text += value == 0 ? '.' : value == kPageHeatUnknown ? '?' : '#';
    }
    return text;
}

}  // namespace

TEST_CASE("a process keeps its memory after its last event until it ends") {
    std::vector<ProcessSummary> made = ranks(6);
    made[0].end_ns = 20 * kSecond;
    made[1].end_ns = 12 * kSecond;
    made[2].killed = {.alive_ns = 12 * kSecond, .seen_ns = 16 * kSecond};
    kill(&made[2], SIGKILL);
    made[3].end = {.ending = Ending::kRunning};
    made[4].damaged = true;
    made[4].end_ns = 15 * kSecond;
    made[5].killed = {.alive_ns = 14 * kSecond};
    made[5].end = {.ending = Ending::kNotRecorded};
    const PageData page = page_of(made);
    CHECK(page.heat.columns * page.heat.column_ns >= 20 * kSecond);
    CHECK(states(page, 0, 20) == "####################");
    CHECK(states(page, 1, 20) == "############........");
    CHECK(states(page, 2, 20) == "############????....");
    CHECK(states(page, 3, 20) == "##########??????????");
    CHECK(states(page, 4, 20) == "##########?????.....");
    CHECK(states(page, 5, 20) == "##############??????");
}

TEST_CASE("what a process keeps is the last value, not the most of the time before") {
    std::vector<ProcessSummary> made = ranks(2);
    made[0].end_ns = made[1].end_ns = 20 * kSecond;
    auto& bins = made[0].devices[0].curve.reserved;
    bins.push_back(0);
    const PageData page = page_of(made);
    const auto at = [&page](std::size_t row, std::uint64_t seconds) {
        return page.ranks[row].reserved_heat.at(seconds * kSecond / page.heat.column_ns);
    };
    CHECK(at(0, 9) == kPageHeatMost);
    CHECK(at(0, 15) == kPageHeatZero);
    CHECK(at(1, 15) == kPageHeatMost);
}
