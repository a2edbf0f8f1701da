// Cards that several processes use at the same time.
#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/json/job_json.h"
#include "analyzer/report/text/job_text.h"
#include "tests/unit/job/job_lines.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

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
    // Unless both are containers of one machine.
    made[1].place.boot_id = made[2].place.boot_id = "5f1c";
    CHECK(view_of(job_of(made)).shared.size() == 1);
    made[2].place.host = "node1";
    made[2].place.boot_id = "77aa";
    CHECK(view_of(job_of(made)).shared.empty());
    made[1].place.boot_id = made[2].place.boot_id = "";
    // So are virtual cards of another set, and those that are not shared.
    made[2].place.host = "node1";
    made[1].card_set = made[2].card_set = "lab";
    CHECK(view_of(job_of(made)).shared.size() == 1);
    made[2].card_set = "other";
    CHECK(view_of(job_of(made)).shared.empty());
    made[1].card_set = made[2].card_set = "-";
    CHECK(view_of(job_of(made)).shared.empty());
}

TEST_CASE("a damaged trace on a shared card makes no upper bound") {
    std::vector<ProcessSummary> made = ranks(2);
    made[0].devices[0].uuid = made[1].devices[0].uuid = "GPU-shared";
    CHECK(view_of(job_of(made)).shared.at(0).at_most);
    made[1].damaged = true;
    CHECK_FALSE(view_of(job_of(made)).shared.at(0).at_most);
    const std::string line = line_with(job_of(made), "same card");
    CHECK(contains(line, " had several processes: "));
    CHECK(contains(line, "rank 1 about "));
    CHECK(contains(line, "(estimate: events of some traces are missing)"));
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

TEST_CASE("a program that exec replaced holds no memory after its process began the next program") {
    std::vector<ProcessSummary> made = ranks(2);
    for (ProcessSummary& process : made) {
        process.devices[0].uuid = "GPU-shared";
        process.place.process = {process.pid, 77 + process.pid};
    }
    ProcessSummary earlier = made[1];
    earlier.file = "launch.101.ftrace";
    earlier.end = {.ending = Ending::kExec};
    earlier.last_event_ns = 1'000'000'000;
    earlier.contexts = {{.uuid = "GPU-shared", .bytes = 400 * kMiB}};
    made[1].start_unix_ns += 2'000'000'000;
    fail(&made[0], 5'000'000'000);
    made.push_back(earlier);
    const auto holders = [&made] {
        const Job job = job_of(made);
        std::vector<std::string> files;
        const std::vector<SharedCard> shared = view_of(job).shared;
        for (const SharedCard& card : shared) {
            for (const CardUser& user : card.users) {
                files.push_back(job.at(user.process).file);
            }
            for (const CardContext& context : card.contexts) {
                files.push_back("context of " + job.at(context.process).file);
            }
        }
        std::sort(files.begin(), files.end());
        return files;
    };
    CHECK(holders() == std::vector<std::string>{"train.100.ftrace", "train.101.ftrace"});
    const Job job = job_of(made);
    const ProcessSummary& replaced = job.processes.back();
    REQUIRE(replaced.file == "launch.101.ftrace");
    CHECK(replaced.ended_at() == earlier.start_unix_ns + 1'000'000'000);
    CHECK(replaced.ended_by() == earlier.start_unix_ns + 2'000'000'000);
    // Another out-of-memory, before the exec.
    fail(&made[0], 1'500'000'000);
    CHECK(holders() == std::vector<std::string>{"context of launch.101.ftrace",
                                                "launch.101.ftrace",
                                                "train.100.ftrace"});
    // Another process with the same number replaced nothing: this one may still be there.
    fail(&made[0], 5'000'000'000);
    made[1].place.process.start_ticks = 5;
    CHECK(holders().size() == 4);
}

TEST_CASE("the programs of one process do not share a card") {
    std::vector<ProcessSummary> made = ranks(2);
    made[1].place.process = {made[1].pid, 77};
    ProcessSummary earlier = made[1];
    earlier.file = "launch.101.ftrace";
    earlier.end = {.ending = Ending::kExec};
    made[1].start_unix_ns += 11'000'000'000;
    made.push_back(earlier);
    CHECK(view_of(job_of(made)).shared.empty());
    CHECK(
        contains(line_with(job_of(made), "  differs "),
                 "pid 101 (earlier program of rank 1): peak 2 GiB as ranks 0-1; an earlier program "
                 "of a rank"));
    // Two processes do.
    made[0].devices[0].uuid = made[1].devices[0].uuid;
    CHECK(view_of(job_of(made)).shared.size() == 1);
}

TEST_CASE("a card that was fullest at once is said to be so when the job began") {
    std::vector<ProcessSummary> made = ranks(2);
    made[0].devices[0].uuid = made[1].devices[0].uuid = "GPU-shared";
    made[1].start_unix_ns = made[0].start_unix_ns;
    CHECK(contains(line_with(job_of(made), "  same card "),
                   "when most was reserved, about when the job began, its processes' pools"));
}
