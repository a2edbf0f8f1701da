// What would help all processes: a card, what is needed at least, a setting, equal shares.
#include "analyzer/analysis/job/job_view.h"
#include "analyzer/analysis/job/read_job.h"
#include "analyzer/report/json/job_json.h"
#include "tests/unit/job/job_lines.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

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
                        "shares each would need 14 GiB of the 23 GiB that their pools can use");
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

TEST_CASE("without a replay, a card for all is the largest peak plus what is outside the pool") {
    std::vector<ProcessSummary> made = ranks(3);
    made[1] = rank_of(1, 4 * kGiB);
    made[1].place.world_size = 3;
    auto card = view_of(job_of(made)).card;
    REQUIRE(card);
    CHECK(card->enough_bytes == 5 * kGiB);
    CHECK(card->replayed_bytes == 0);
    fail(&made[1], 5);  // what it would have needed is not known
    CHECK_FALSE(view_of(job_of(made)).card);
    made[1] = rank_of(1);
    made[1].place.world_size = 3;
    CHECK(view_of(job_of(made)).card);
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
        made[0].place.world_size = made[1].place.world_size = 2;
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
              needs +
              "\n"
              "  setting    no setting that was replayed helps all\n");
    made[0].replayed = true;
    CHECK(lines() == "  card       none that was replayed is known to be enough for all" + needs +
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
        process.place.world_size = 2;
        process.devices[0].cards = {replay("a card of 4 GiB", 0, kGiB)};
        process.devices[0].cards[0].total_bytes = 4 * kGiB;
    }
    made[1].devices[0].cards[0].gets_past = true;
    CHECK(card() ==
          "  card       on a card of 4 GiB all get past the out-of-memory, later requests are "
          "unknown (exact; replayed on ranks 0-1); the rest of the step of rank 1 is forecast to "
          "need a card of about 5 GiB (estimate)");
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
    CHECK(setting(std::nullopt, std::nullopt) == "A; what follows is unknown");
    CHECK(setting(true, true) == "A; the rest of the step is forecast to fit (estimate)");
    CHECK(setting(false, true) == "B; the rest of the step is forecast to fit (estimate)");
    CHECK(setting(false, std::nullopt) == "B; what follows is unknown");
    CHECK(setting(false, false) == "A; the rest of the step is forecast to fail (estimate)");
}

TEST_CASE("a card that is enough has room for the contexts of other processes on it") {
    std::vector<ProcessSummary> made = ranks(3);
    for (ProcessSummary& process : made) {
        process.devices[0].capacity_bytes = process.devices[0].total_bytes - 64 * kMiB;
        process.contexts = {{.uuid = process.devices[0].uuid, .bytes = 64 * kMiB}};
    }
    const auto enough = [&made] {
        const auto card = view_of(job_of(made)).card;
        return card ? card->enough_bytes : 0;
    };
    CHECK(enough() == 2 * kGiB + 64 * kMiB);
    made[1].contexts.push_back({.uuid = "GPU-0", .bytes = 64 * kMiB});
    made[2].contexts.push_back({.uuid = "GPU-0", .bytes = 64 * kMiB});
    CHECK(enough() == 2 * kGiB + 3 * 64 * kMiB);
    // The driver's last report had them already.
    made[0].devices[0].capacity_bytes -= 2 * 64 * kMiB;
    CHECK(enough() == 2 * kGiB + 3 * 64 * kMiB);
    // A replay knows only the contexts of its trace.
    for (ProcessSummary& process : made) {
        process.replayed = true;
        process.devices[0].cards = {replay("a small card", 0, 2 * kGiB)};
        process.devices[0].cards[0].total_bytes = 2 * kGiB + 128 * kMiB;
    }
    CHECK(view_of(job_of(made)).card->replayed_bytes == 0);
    made[0].devices[0].cards[0].peak_reserved = 2 * kGiB - 64 * kMiB;
    CHECK(view_of(job_of(made)).card->replayed_bytes == 2 * kGiB + 128 * kMiB);
    // The size of a context is not known.
    made[1].contexts[1].bytes = 0;
    CHECK(enough() == 0);
    // That context was gone before the other process began.
    made[0].start_unix_ns += 5'000'000'000;
    made[1].contexts[1].end_ns = 1'000'000'000;
    CHECK(enough() == 2 * kGiB + 3 * 64 * kMiB);
}

TEST_CASE("no card is known to be enough if a trace is missing or not complete") {
    const auto card = [](const std::vector<ProcessSummary>& made, bool unreadable = false) {
        Job job = job_of(made);
        if (unreadable) {
            job.unreadable.push_back({"x.ftrace", "x.ftrace: is damaged"});
        }
        for (const ProcessDevice& device : job.processes[0].devices) {
            CHECK(device.blocks_are_pool_blocks);
        }
        return line_with(job, "  card ");
    };
    std::vector<ProcessSummary> made = ranks(3);
    for (ProcessSummary& process : made) {
        process.devices[0].blocks_are_pool_blocks = true;
    }
    const std::string unknown =
        "  card       not known: traces are missing or not complete, or their ends are not "
        "recorded; the pool of rank 0 needs at "
        "least 1.9 GiB (its peak)";
    CHECK(contains(card(made), "is enough for the recorded runs"));
    CHECK(card(made, true) == unknown);
    CHECK(card({made[0], made[1]}) == unknown);
    made[2].damaged = true;
    CHECK(card(made) == unknown);
    made[2].damaged = false;
    made[2].recording_gaps = true;
    CHECK(card(made) == unknown);
    made[2].recording_gaps = false;
    made[2].events_lost = 1;
    CHECK(card(made) == unknown);
    made[2].events_lost = 0;
    made[2].end = {.ending = Ending::kNotRecorded};
    CHECK(card(made) == unknown);
    made[2].end = {.ending = Ending::kRunning};
    CHECK(card(made).ends_with("; so far: rank 2 still runs, and may need more"));
}

TEST_CASE("what is recorded of a process without an end is a lower bound") {
    std::vector<ProcessSummary> made = ranks(3);
    made[2] = rank_of(2, 4 * kGiB);
    const auto differs = [&made] { return line_with(job_of(made), "  differs "); };
    CHECK(contains(differs(), "rank 2: peak 4 GiB, 2 GiB more than ranks 0-1"));
    for (const Ending ending : {Ending::kNotRecorded, Ending::kRunning}) {
        made[2].end = {.ending = ending};
        CHECK(contains(differs(),
                       "rank 2: peak at least 4 GiB, in the recorded part 2 GiB more than ranks "
                       "0-1"));
    }
}
