#include "analyzer/analysis/job/job.h"

#include "../model/events.h"
#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/commands/job_page.h"
#include "analyzer/report/page/page_ranks.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <csignal>

using namespace fragtrace;
using namespace fragtrace::analyzer;

namespace {

ProcessSummary process(std::uint64_t peak_reserved) {
    ProcessSummary made;
    made.path = "x.ftrace";
    made.devices.emplace_back().run.peak_reserved = peak_reserved;
    return made;
}

ProcessSummary failed(std::uint64_t start_unix_ns, std::uint64_t first_oom_ns) {
    ProcessSummary made = process(kGiB);
    made.start_unix_ns = start_unix_ns;
    made.devices[0].run.ooms = 1;
    made.devices[0].first_oom_ns = first_oom_ns;
    made.devices[0].near_end_oom_ns = first_oom_ns;
    return made;
}

}  // namespace

TEST_CASE("processes are sorted by the time of their first failure on the common clock") {
    Job job;
    job.processes = {
        process(9 * kGiB), failed(5'000, 900), failed(5'500, 100), failed(4'000, 1'700)};
    CHECK(by_interest(job) == std::vector<std::size_t>{2, 3, 1, 0});
}

TEST_CASE("the first failure is named: an out-of-memory before other ends, victims last") {
    const auto ended = [](std::uint64_t start_unix_ns, int code, int signal) {
        ProcessSummary made = process(kGiB);
        made.start_unix_ns = start_unix_ns;
        made.end.code = code < 0 ? std::nullopt : std::optional(code);
        made.end.signal = signal == 0 ? std::nullopt : std::optional(signal);
        return made;
    };
    Job job;
    job.processes = {ended(1, 0, 0), ended(2, 0, 0)};
    CHECK_FALSE(first_failure(job));
    // A victim's last event may be older, because it waited for the process that failed.
    job.processes = {ended(1, -1, SIGTERM), ended(2, 1, 0), ended(3, -1, SIGSEGV)};
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        job.processes[i].place.rank = static_cast<int>(i);
    }
    REQUIRE(first_failure(job));
    CHECK(first_failure(job)->process == 1);
    CHECK(first_failure(job)->of == 3);
    CHECK_FALSE(first_failure(job)->out_of_memory);
    CHECK(by_interest(job).front() == 1);
    // One process caught its out-of-memory, the other one died of it.
    job.processes.push_back(failed(4, 10));
    job.processes.back().pid = 4;
    job.processes.back().end = {.ending = Ending::kNormal, .code = 0};
    job.processes.push_back(failed(5, 10));
    job.processes.back().pid = 5;
    job.processes.back().end = {.ending = Ending::kNormal, .code = 1};
    CHECK(first_failure(job)->process == 4);
    CHECK(first_failure(job)->out_of_memory);
    CHECK(first_failure(job)->of == 5);
    job.processes[0].end = {.ending = Ending::kExec};
    job.processes[0].has_later_program = true;  // which counts
    CHECK(first_failure(job)->of == 4);
    CHECK(by_interest(job).front() == 4);
    CHECK_FALSE(first_failure(Job()));
}

TEST_CASE("without an out-of-memory, the process that ended first failed first") {
    Job job;
    for (int rank = 0; rank < 2; ++rank) {
        ProcessSummary made = process(kGiB);
        made.place.rank = rank;
        made.start_unix_ns = 1'000'000'000;
        made.end = {.ending = Ending::kNormal, .code = 5};
        job.processes.push_back(made);
    }
    job.processes[0].last_event_ns = 10;
    job.processes[0].end_ns = 2'500'000'000;
    job.processes[1].last_event_ns = 500'000'000;
    job.processes[1].end_ns = 800'000'000;
    REQUIRE(first_failure(job));
    CHECK(first_failure(job)->process == 1);
    CHECK(first_failure(job)->at_unix_ns == 1'800'000'000);
    CHECK(first_failure(job)->until_unix_ns == 1'800'000'000);
    // Without any bound the signal came at the last event or later.
    job.processes[1].end = {.ending = Ending::kKilled, .signal = SIGABRT};
    job.processes[1].end_ns = std::nullopt;
    CHECK(first_failure(job)->process == 1);
    CHECK(first_failure(job)->at_unix_ns == 1'500'000'000);
    CHECK_FALSE(first_failure(job)->until_unix_ns);
    // It last ran later, and its parent saw its end later still.
    job.processes[1].killed = {.alive_ns = 700'000'000, .seen_ns = 750'000'000};
    CHECK(first_failure(job)->at_unix_ns == 1'700'000'000);
    CHECK(first_failure(job)->until_unix_ns == 1'750'000'000);
    // It ran after the other one had ended.
    job.processes[1].killed = {.alive_ns = 2'600'000'000};
    CHECK(first_failure(job)->process == 0);
}

TEST_CASE("an out-of-memory that a process got past does not count as its end") {
    Job job;
    job.processes = {failed(1, 100), failed(1, 900), failed(1, 200)};
    for (ProcessSummary& process : job.processes) {
        process.end = {.ending = Ending::kNormal, .code = 1};
        process.last_event_ns = 1'000;
        process.devices[0].near_end_oom_ns = std::nullopt;  // many requests were served later
    }
    job.processes[0].last_event_ns = 10;
    CHECK(first_failure(job)->process == 0);
    CHECK_FALSE(first_failure(job)->out_of_memory);
    // A few small requests were served later.
    job.processes[1].devices[0].near_end_oom_ns = 900;
    CHECK(first_failure(job)->process == 1);
    CHECK(first_failure(job)->out_of_memory);
    job.processes[1].devices[0].final_oom_ns = 900;
    CHECK(first_failure(job)->process == 1);
    // This one got past its first out-of-memory and ran into another one.
    job.processes[2].devices[0].final_oom_ns = 800;
    CHECK(first_failure(job)->process == 2);
    CHECK(job.processes[2].named_oom() == 801u);
    CHECK(job.processes[0].named_oom() == 101u);
    job.processes[2].devices[0].failures = {{.time_ns = 200, .why = "first"},
                                            {.time_ns = 800, .why = "final"}};
    REQUIRE(job.processes[2].named_failure() != nullptr);
    CHECK(job.processes[2].named_failure()->why == "final");
    CHECK(job.processes[1].named_failure() == nullptr);
    // A process that caught it and ended normally.
    job.processes[2].end.code = 0;
    CHECK(first_failure(job)->process == 2);
}

TEST_CASE("without a failure, retries come first, then the highest peak") {
    Job job;
    job.processes = {process(3), process(9), process(1), process(5)};
    CHECK(by_interest(job) == std::vector<std::size_t>{1, 3, 2, 0});
    job.processes[0].devices[0].run.retries = 1;
    job.processes[3].devices[0].run.retries = 2;
    CHECK(by_interest(job) == std::vector<std::size_t>{3, 1, 2, 0});
}

TEST_CASE("the highest and the lowest peak come before the seventh failure") {
    Job job;
    for (std::uint64_t i = 0; i < 20; ++i) {
        job.processes.push_back(failed(1'000, i));
    }
    job.processes.push_back(process(kGiB / 2));
    job.processes.push_back(process(2 * kGiB));
    const std::vector<std::size_t> order = by_interest(job);
    CHECK(std::vector(order.begin(), order.begin() + 9) ==
          std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 21, 20, 6});
    CHECK(order.size() == job.processes.size());
}

TEST_CASE("a process whose blocks do not fit is skipped, except the first") {
    Job job;
    job.processes = {process(1), failed(1, 1), process(3), process(2)};
    const auto blocks = [&](std::vector<std::uint64_t> counts) {
        for (std::size_t i = 0; i < counts.size(); ++i) {
            job.processes[i].devices[0].blocks = counts[i];
        }
    };
    blocks({10, 60, 50, 40});  // in the order of interest: 60, 50, 10, 40
    CHECK(choose_whole(job, {8, 64, 100}) == std::vector<std::size_t>{1, 0});
    CHECK(choose_whole(job, {8, 64, 110}) == std::vector<std::size_t>{1, 2});
    CHECK(choose_whole(job, {8, 64, 160}) == std::vector<std::size_t>{1, 2, 0, 3});
    CHECK(choose_whole(job, {2, 64, 160}) == std::vector<std::size_t>{1, 2});
    CHECK(choose_whole(job, {8, 64, 59}) == std::vector<std::size_t>{1});
    CHECK(choose_whole(job, {8, 2, 160}).size() == 2);
    CHECK(choose_whole(Job(), {8, 64, 100}).empty());
    job.processes[1].path.clear();  // only a summary
    CHECK(choose_whole(job, {8, 64, 160}) == std::vector<std::size_t>{2, 0, 3});
}

TEST_CASE(
    "the processes that a page of more than 64 shows completely have at most 900,000 blocks") {
    Job job;
    for (int i = 0; i < 64; ++i) {
        job.processes.push_back(process(1));
        job.processes.back().path = "x.ftrace";
        job.processes.back().devices[0].blocks = 300'000;
    }
    CHECK(whole_on_page(job).size() == 8);
    job.processes.push_back(job.processes.front());
    CHECK(whole_on_page(job).size() == 3);
    for (ProcessSummary& each : job.processes) {
        each.devices[0].blocks = 300'001;
    }
    CHECK(whole_on_page(job).size() == 2);
    for (ProcessSummary& each : job.processes) {
        each.devices[0].blocks = 2'000'000;
    }
    CHECK(whole_on_page(job).size() == 1);  // the first one may have more
}

TEST_CASE("a process that used no device is not drawn") {
    Job job;
    job.processes = {ProcessSummary(), process(1)};
    CHECK(by_interest(job) == std::vector<std::size_t>{1});
    CHECK(by_interest(Job()).empty());
}

TEST_CASE("failures, blocks and calls are counted per device, with the first failure's time") {
    testing::Events events;
    events.segment(0x1000000, 20 * kMiB);
    events.block(0x1000000, 500, 512);
    events.add(EventKind::kBlockOutOfMemory, 0, kGiB);
    events.add(EventKind::kCallOutOfMemory).device(3);
    events.block(0x1000200, 500, 512);
    events.timeline.pid = 7;
    const ProcessSummary process =
        summarize_process(summarize_timeline(events.timeline), "folder/x.7.ftrace");
    CHECK(process.file == "x.7.ftrace");
    REQUIRE(process.devices.size() == 2);
    CHECK(process.devices[0].blocks == 2);
    CHECK(process.devices[0].run.ooms == 1);
    CHECK(process.devices[0].first_oom_ns == 2'000u);
    CHECK_FALSE(process.devices[0].final_oom_ns);         // a block was allocated afterwards
    CHECK(process.devices[0].near_end_oom_ns == 2'000u);  // a small one
    CHECK(process.devices[1].device == 3);
    CHECK(process.devices[1].first_oom_ns == 3'000u);
    CHECK(process.devices[1].final_oom_ns == 3'000u);
    CHECK(process.sum(&RunFigures::ooms) == 2);
    CHECK(process.sum(&RunFigures::peak_reserved) == 20 * kMiB);
}

TEST_CASE("an out-of-memory is near the end if only a few small requests were served after it") {
    const auto near_end = [](std::uint64_t requests, std::uint64_t bytes) {
        testing::Events events;
        events.segment(0x1000000, 200 * kMiB);
        events.block(0x1000000, 500, 512);
        events.add(EventKind::kBlockOutOfMemory, 0, kGiB);
        for (std::uint64_t i = 0; i < requests; ++i) {
            events.block(0x1000200 + i * bytes, bytes, bytes);
        }
        events.add(EventKind::kBlockOutOfMemory, 0, kGiB);
        const ProcessSummary process =
            summarize_process(summarize_timeline(events.timeline), "x.7.ftrace");
        REQUIRE(process.devices[0].final_oom_ns);
        return process.devices[0].near_end_oom_ns != process.devices[0].final_oom_ns;
    };
    CHECK(near_end(1, kMiB));
    CHECK_FALSE(near_end(1, kMiB + 512));
    CHECK(near_end(kFewRequests, 512));
    CHECK_FALSE(near_end(kFewRequests + 1, 512));
}

TEST_CASE("every process and device has a line with its position in the file") {
    Job job;
    job.processes = {process(5), ProcessSummary()};
    job.processes[0].devices.emplace_back().device = 1;
    job.processes[0].start_unix_ns = 1'000;
    job.processes[0].path = "a b/x.ftrace";
    job.processes[0].file = "x.ftrace";
    job.processes[1].start_unix_ns = 400;
    job.unreadable = {{"bad.ftrace", "no trace"}};
    PageData data;
    add_ranks(job, view_of(job), {{{0, 1}, 4}}, &data);
    REQUIRE(data.ranks.size() == 3);
    CHECK(data.ranks[0].device == kPageNoDevice);
    CHECK(data.ranks[0].capacity_bytes == kPageUnknown);
    CHECK(data.ranks[0].run.peak_reserved == 5);
    CHECK(data.ranks[0].start_after_ns == 600);
    CHECK(data.ranks[0].command == "fraganalyze 'a b/x.ftrace' --html x.html");
    CHECK(data.ranks[1].gpu == 1);
    CHECK(data.ranks[1].device == 4);
    CHECK(data.ranks[2].gpu == -1);
    CHECK(data.ranks[2].start_after_ns == 0);
    CHECK(data.unreadable[0].file == "bad.ftrace");
}

namespace {

constexpr std::uint64_t kTicks = 100;

// A file of process `pid` with this rank. Files with the same session belong together.
ProcessSummary file_of(int rank, std::uint32_t pid, std::uint64_t session) {
    ProcessSummary made = process(kGiB);
    made.pid = pid;
    made.path = made.file = "p" + std::to_string(session) + ".ftrace";
    made.place.rank = rank;
    made.place.host = "n1";
    made.place.process = {pid, kTicks};
    made.place.session = {session, 0};
    return made;
}

std::vector<int> ranks_of(const Job& job) {
    std::vector<int> ranks;
    for (const ProcessSummary& process : job.processes) {
        ranks.push_back(process.place.rank);
    }
    return ranks;
}

}  // namespace

TEST_CASE(
    "parts and copies belong to the recording's newest file, which gets the largest figures") {
    Job job;
    for (const char* kind : {"oom1", "part3", "part4"}) {
        ProcessSummary file = file_of(0, 10, 1);
        file.file = std::string("p.") + kind;
        file.path = "folder/" + file.file;
        file.last_event_ns = 50;
        job.processes.push_back(file);
    }
    job.processes[0].place.copy_reason = "oom";
    job.processes[0].devices[0].run.ooms = 1;
    job.processes[0].devices[0].run.peak_reserved = 3 * kGiB;
    job.processes[0].devices[0].first_oom_ns = 7;
    job.processes[1].place.part = 3;
    job.processes[1].devices[0].run.retries = 2;
    job.processes[1].pool_failures = 4;
    job.processes[2].place.part = 4;
    job.processes[2].end.code = 1;
    job.processes[2].devices.push_back(job.processes[2].devices[0]);
    job.processes[2].devices[1].device = 1;
    job.processes.push_back(file_of(1, 11, 2));
    arrange(&job);
    REQUIRE(job.processes.size() == 2);
    const ProcessSummary& joined = job.processes[0];
    CHECK(joined.file == "p.part4");
    CHECK(joined.other_files == std::vector<std::string>{"p.part3", "p.oom1"});
    CHECK(joined.failure_path == "folder/p.oom1");
    CHECK(joined.end.code == 1);
    REQUIRE(joined.devices.size() == 2);
    CHECK(joined.devices[0].run.ooms == 1);
    CHECK(joined.devices[0].run.retries == 2);
    CHECK(joined.pool_failures == 4);
    CHECK(joined.devices[0].run.peak_reserved == 3 * kGiB);
    CHECK(joined.devices[1].run.ooms == 0);
    REQUIRE(first_failure(job));
    CHECK(first_failure(job)->process == 0);
    CHECK(first_failure(job)->of == 2);
}

TEST_CASE("files without a known recording stay apart") {
    Job job;
    job.processes = {file_of(-1, 0, 0), file_of(-1, 0, 0)};
    arrange(&job);
    CHECK(job.processes.size() == 2);
}

TEST_CASE("a process with the rank of a recorded ancestor is a helper of that rank") {
    Job job;
    job.processes = {file_of(0, 10, 1), file_of(1, 20, 2), file_of(1, 30, 3), file_of(1, 40, 4)};
    job.processes[2].place.ancestors = {{25, 9}, {20, kTicks}, {1, 1}};  // below rank 1
    job.processes[3].place.ancestors = {{30, kTicks}};                   // below the helper
    arrange(&job);
    CHECK(ranks_of(job) == std::vector<int>{0, 1, -1, -1});
    CHECK(job.processes[2].place.inherited_rank == 1);
    CHECK(job.processes[3].place.inherited_rank == 1);
}

TEST_CASE("a process is no helper of another rank, host, generation or time") {
    const auto kept = [](auto change) {
        Job job;
        job.processes = {file_of(0, 10, 1), file_of(0, 20, 2)};
        job.processes[1].place.ancestors = {{10, kTicks}};
        change(&job.processes[1].place);
        arrange(&job);
        return job.processes[0].place.rank >= 0 && job.processes[1].place.rank >= 0;
    };
    CHECK_FALSE(kept([](JobPlace*) {}));
    CHECK(kept([](JobPlace* place) { place->rank = 1; }));
    CHECK(kept([](JobPlace* place) { place->host = "n2"; }));
    CHECK(kept([](JobPlace* place) { place->generation = 1; }));
    CHECK(kept([](JobPlace* place) { place->ancestors = {{10, kTicks + 1}}; }));
    CHECK(kept([](JobPlace* place) { place->rank_source = kRankFromNccl; }));
}

TEST_CASE("generations of an elastic job are kept apart, each with its first failure") {
    Job job;
    for (int generation : {1, 0}) {
        for (int rank : {1, 0}) {
            const auto pid = static_cast<std::uint32_t>(10 * generation + rank + 1);
            job.processes.push_back(file_of(rank, pid, pid));
            job.processes.back().place.generation = generation;
            job.processes.back().start_unix_ns = 1'000 * static_cast<std::uint64_t>(generation + 1);
        }
    }
    CHECK(first_failures(job).empty());
    job.processes[3].end.code = 1;                   // rank 0 of generation 0
    job.processes[0].devices[0].first_oom_ns = 500;  // rank 1 of generation 1
    job.processes[0].devices[0].final_oom_ns = 500;
    job.processes.push_back(file_of(-1, 50, 50));
    arrange(&job);
    CHECK(ranks_of(job) == std::vector<int>{0, 1, 0, 1, -1});
    CHECK(has_generations(job));
    const std::vector<FirstFailure> failures = first_failures(job);
    REQUIRE(failures.size() == 2);
    CHECK(failures[0].process == 0);
    CHECK_FALSE(failures[0].out_of_memory);
    CHECK(failures[0].of == 2);
    CHECK(failures[1].process == 3);
    CHECK(failures[1].out_of_memory);
    CHECK(failures[1].of == 2);
    CHECK(first_failure(job)->process == 3);  // an out-of-memory counts before other failures
}
