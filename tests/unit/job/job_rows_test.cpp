// The rows of the view of a job: the same for the terminal and the page, and the processes that
// their sentences name.
#include "analyzer/report/text/job_rows.h"

#include "analyzer/report/page/page_ranks.h"
#include "analyzer/report/text/job_names.h"
#include "analyzer/report/text/job_text.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <fmt/format.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

namespace {

JobRow row(const std::string& text, JobRowKind kind = JobRowKind::kRow) {
    return {.kind = kind, .label = "others", .text = text};
}

std::vector<std::size_t> named(const std::vector<NamedPart>& parts) {
    std::vector<std::size_t> all;
    for (const NamedPart& part : parts) {
        all.insert(all.end(), part.processes.begin(), part.processes.end());
    }
    std::sort(all.begin(), all.end());
    return all;
}

std::string joined(const std::vector<NamedPart>& parts) {
    std::string text;
    for (const NamedPart& part : parts) {
        text += part.text;
    }
    return text;
}

// Ranks of two generations, helpers, and processes without a rank, some with the same numbers.
Job mixed_job(Random& random) {
    std::vector<ProcessSummary> made;
    const int generations = 1 + static_cast<int>(below(random, 2));
    for (int generation = 0; generation < generations; ++generation) {
        for (ProcessSummary process : ranks(12)) {
            process.place.generation = generation;
            process.pid += 1000 * static_cast<std::uint32_t>(generation);
            process.file = fmt::format("train.{}.ftrace", process.pid);
            if (below(random, 8) == 0) {
                process.place.rank = below(random, 2) == 0 ? -1 : 3;
            }
            made.push_back(process);
        }
    }
    return job_of(std::move(made));
}

}  // namespace

TEST_CASE("the names that a sentence has are found again") {
    Random random(18);
    for (int round = 0; round < 300; ++round) {
        const Job job = mixed_job(random);
        std::vector<std::size_t> members;
        std::size_t without_number = 0;
        for (std::size_t i = 0; i < job.processes.size() && members.size() < 8; ++i) {
            const ProcessSummary& process = job.processes[i];
            const bool plain = process.place.rank >= 0 && process.told_apart_by.empty();
            // More than three such names of a generation are only counted.
            if (below(random, 3) == 0 && (plain || ++without_number <= 3)) {
                members.push_back(i);
            }
        }
        if (members.empty()) {
            continue;
        }
        const std::string text = "also " + names_of(job, members) + ": peak 3 GiB";
        INFO(text);
        const std::vector<NamedPart> parts = ProcessNames(job).parts_of(row(text));
        CHECK(joined(parts) == text);
        CHECK(named(parts) == members);
        CHECK(parts.front().text.starts_with("also "));
    }
}

TEST_CASE("a part without a process names none") {
    const Job job = job_of(ranks(4));
    const ProcessNames names(job);
    for (const char* text : {"rank 4 is missing",
                             "rank",
                             "ranks ",
                             "ranks 7-9",
                             "rank 99999999999999999999",
                             "crank 3",
                             "pid 103",
                             "4 ranks have no readable trace",
                             ""}) {
        CHECK(named(names.parts_of(row(text))).empty());
        CHECK(joined(names.parts_of(row(text))) == text);
    }
    // A sentence of one process's report has names of the program, not of the job.
    CHECK(named(names.parts_of(row("rank 3", JobRowKind::kOfReport))).empty());
    CHECK(named(names.parts_of(row("rank 31"))).empty());
    CHECK(names.parts_of(row("ranks 1-2, 3 GiB")) ==
          std::vector<NamedPart>{{"ranks 1-2, 3", {1, 2, 3}}, {" GiB"}});
}

TEST_CASE("a process without any name is found nowhere") {
    std::vector<ProcessSummary> made = ranks(2);
    made[1].place.rank = -1;
    made[1].pid = 0;
    made[1].file.clear();
    const Job job = job_of(made);
    CHECK(ProcessNames(job).parts_of(row("a b")) == std::vector<NamedPart>{{"a b"}});
}

TEST_CASE("a heading of a generation names the rank of that generation") {
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
    const Job job = job_of(made);
    const ProcessNames names(job);
    std::vector<std::size_t> failed;
    for (const JobRow& one : job_rows(job, view_of(job))) {
        if (one.kind == JobRowKind::kFailure) {
            const std::vector<std::size_t> found = named(names.parts_of(one));
            failed.insert(failed.end(), found.begin(), found.end());
        }
    }
    CHECK(failed == std::vector<std::size_t>{2, 4});
}

TEST_CASE("the page has the groups that the terminal leaves out") {
    std::vector<ProcessSummary> made = ranks(24);
    for (std::size_t i = 4; i < made.size(); ++i) {
        made[i].devices[0].run.peak_reserved += i * kGiB;
    }
    const Job job = job_of(made);
    const JobView view = view_of(job);
    const auto differing = [&](JobReader reader) {
        const JobRows rows = job_rows(job, view, reader);
        CHECK((rows.back().text.find("--json") == std::string::npos || reader != JobReader::kPage));
        return std::count_if(
            rows.begin(), rows.end(), [](const JobRow& one) { return one.label == "differs"; });
    };
    CHECK(differing(JobReader::kTerminal) == 6);
    CHECK(view.differences.size() > 6);
    CHECK(differing(JobReader::kPage) == static_cast<std::ptrdiff_t>(view.differences.size()));
}

TEST_CASE("the page has every row of the text, in the same words") {
    std::vector<ProcessSummary> made = ranks(8);
    fail(&made[3], 1'000'000'000);
    made[3].devices[0].failures = {{.time_ns = 1'000'000'000,
                                    .verdict = "genuine",
                                    .why = "not enough memory for rank 5",
                                    .at = "train.py:42 step",
                                    .culprit = "train.py:42 step holds most",
                                    .remedy = "none"}};
    kill(&made[5], SIGTERM);
    made[6].devices[0].run.peak_reserved += kGiB;
    made[7].place.world_size = 10;
    Job job = job_of(made);
    job.unreadable = {{"bad.ftrace", "job/bad.ftrace: not a trace"}};
    const JobView view = view_of(job);
    PageData page;
    add_ranks(job, view, {}, &page);

    std::string text;
    for (const PageJobRow& shown : page.job) {
        std::string words;
        for (const PageNamed& part : shown.parts) {
            words += part.text;
            for (const std::size_t rank : part.ranks) {
                CHECK(rank < page.ranks.size());
            }
        }
        switch (shown.kind) {
            case PageJobRowKind::kFailure:
            case PageJobRowKind::kHeading:
                text += words + "\n";
                break;
            case PageJobRowKind::kReport:
            case PageJobRowKind::kRow:
                text += fmt::format("  {:<10} {}\n", shown.label, words);
                break;
            case PageJobRowKind::kUnreadable:
                text += "unreadable  " + words + "\n";
        }
    }
    std::string printed = job_text(job, view, Terminal(1, ColorChoice::kNever));
    const std::size_t table = printed.find(" rank      pid");
    REQUIRE(table != std::string::npos);
    printed.erase(table, printed.find("unreadable") - table);
    CHECK(text == printed);
    REQUIRE(page.job.size() > 6);
    CHECK(page.job[0].parts[0].text == "rank 3");
    CHECK(page.job[0].parts[0].ranks == std::vector<std::size_t>{3});
    CHECK(page.job[1].kind == PageJobRowKind::kReport);
    CHECK(page.job[1].parts.size() == 1);  // the rank in the sentence of the report is no link
}

TEST_CASE("the device that ran out of memory stands for its process, and a summary is marked") {
    std::vector<ProcessSummary> made = ranks(2);
    made[1].devices.push_back(made[1].devices[0]);
    made[1].devices[1].device = 1;
    made[1].devices[1].run.ooms = 1;
    made[1].devices[1].first_oom_ns = made[1].devices[1].near_end_oom_ns = 5;
    made[1].end = {.ending = Ending::kNormal, .code = 1};
    made[0].path.clear();
    const Job job = job_of(made);
    PageData page;
    add_ranks(job, view_of(job), {}, &page);
    REQUIRE(page.ranks.size() == 3);
    CHECK(page.job[0].parts[0].ranks == std::vector<std::size_t>{2});
    CHECK_FALSE(page.ranks[0].trace);
    CHECK(page.ranks[1].trace);
    CHECK(page.ranks[1].host == "node1");
}
