// Summaries of processes: the laws of merging, files, and files that are no such files.
#include "analyzer/analysis/job/merge_summaries.h"
#include "analyzer/analysis/job/process_summary_json.h"
#include "analyzer/analysis/job/read_summaries.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/support/in_program.h"
#include "tests/unit/job/made_up_job.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

namespace {

std::string text_of(const std::vector<ProcessSummary>& summaries) {
    std::string text;
    for (const ProcessSummary& summary : summaries) {
        text += to_json_text(summary) + "\n";
    }
    return text;
}

std::vector<ProcessSummary> together(std::vector<ProcessSummary> a,
                                     const std::vector<ProcessSummary>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return merged(std::move(a));
}

// Summaries of few processes, some known twice with different figures.
std::vector<ProcessSummary> some(Random& random) {
    std::vector<ProcessSummary> made;
    for (std::uint64_t i = below(random, 6); i > 0; --i) {
        ProcessSummary process = rank_of(static_cast<int>(below(random, 4)));
        process.events = 1000 + below(random, 2);
        process.replayed = below(random, 2) == 0;
        process.damaged = below(random, 2) == 0;
        process.place.generation = static_cast<int>(below(random, 2)) - 1;
        process.devices[0].run.retries = below(random, 3);
        made.push_back(process);
    }
    return merged(std::move(made));
}

class File {
  public:
    explicit File(const std::string& content = {}) {
        forget_files_read();  // it may get the inode of a file of an earlier test
        std::ofstream(path_) << content;
    }

    ~File() { std::filesystem::remove(path_); }

    File(const File&) = delete;
    File& operator=(const File&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_ = (std::filesystem::temp_directory_path() /
                         ("process_summary_test." + std::to_string(getpid()) + ".json"))
                            .string();
};

std::vector<ProcessSummary> read_back(const std::string& path) {
    std::vector<ProcessSummary> read;
    const Status status =
        read_summaries(path, [&](ProcessSummary process) { read.push_back(std::move(process)); });
    INFO((status ? std::string() : status.error().message));
    REQUIRE(status);
    return read;
}

// Why a file with one changed summary is refused; empty = it is not.
template <typename Change>
std::string refusal(Change change) {
    nlohmann::json json = nlohmann::json::parse(to_json_text(rank_of(3)));
    change(json);
    const File file("{\"schema\":1,\"process_summaries\":[\n" + json.dump() + "\n]}\n");
    const Status status = read_summaries(file.path(), [](const ProcessSummary&) {});
    return status ? std::string() : status.error().message;
}

std::string refusal_of(const std::string& content) {
    const File file(content);
    const Status status = read_summaries(file.path(), [](const ProcessSummary&) {});
    return status ? std::string() : status.error().message;
}

}  // namespace

TEST_CASE("merging is associative, commutative and idempotent") {
    Random random(18);
    for (int round = 0; round < 300; ++round) {
        const auto a = some(random);
        const auto b = some(random);
        const auto c = some(random);
        CHECK(text_of(together(a, together(b, c))) == text_of(together(together(a, b), c)));
        CHECK(text_of(together(a, b)) == text_of(together(b, a)));
        CHECK(text_of(together(a, a)) == text_of(a));
        CHECK(text_of(together(together(a, b), b)) == text_of(together(a, b)));
    }
}

TEST_CASE("a trace and its summary count once, and the trace stays at hand") {
    const ProcessSummary trace = rank_of(1);
    ProcessSummary summary = rank_of(1);
    summary.path.clear();
    summary.replayed = true;
    const std::vector<ProcessSummary> both = merged({trace, rank_of(0), summary});
    REQUIRE(both.size() == 2);
    CHECK(both[1].replayed);
    CHECK(both[1].path == trace.path);
    // The same process id on another host is another process.
    ProcessSummary elsewhere = rank_of(1);
    elsewhere.place.host = "node2";
    CHECK(merged({trace, elsewhere}).size() == 2);
}

TEST_CASE("an explained failure is not lost when another summary knows how the process ended") {
    ProcessSummary explained = rank_of(1);
    fail(&explained, 5, 1);
    ProcessSummary ended = explained;
    explained.end = {.ending = Ending::kNotRecorded};
    explained.analysed = explained.replayed = true;
    explained.devices[0].failures = {{.time_ns = 5, .why = "not enough memory"}};
    explained.devices[0].settings = {replay("expandable_segments:True", 0, kGiB)};
    for (const auto& made : {merged({explained, ended}), merged({ended, explained})}) {
        REQUIRE(made.size() == 1);
        CHECK(made[0].end.code == 1);
        CHECK(made[0].analysed);
        CHECK(made[0].replayed);
        REQUIRE(made[0].named_failure() != nullptr);
        CHECK(made[0].named_failure()->why == "not enough memory");
        CHECK(made[0].devices[0].settings.size() == 1);
    }
    // An analysis of fewer events says nothing about the later ones.
    ended.events += 1;
    CHECK_FALSE(merged({explained, ended})[0].analysed);
}

TEST_CASE("thousands of summaries of one process are merged quickly, with the best one's figures") {
    std::vector<ProcessSummary> made;
    for (std::uint64_t i = 0; i < 2'000; ++i) {
        made.push_back(rank_of(1));
        made.back().devices[0].run.retries = i * 7919 % 2'000;
        made.back().path.clear();
    }
    made[777].path = "there";
    const std::vector<ProcessSummary> one = merged(made);
    REQUIRE(one.size() == 1);
    CHECK(one[0].path == "there");
    std::reverse(made.begin(), made.end());
    CHECK(text_of(merged(made)) == text_of(one));
}

TEST_CASE("a count of failures that is unknown stays unknown in a file and in a sum") {
    ProcessSummary process = rank_of(3);
    process.devices[0].run.ooms = kUnknown64;
    process.devices.push_back(rank_of(4).devices[0]);
    process.devices[1].device = 1;
    process.devices[1].run.ooms = 2;
    CHECK(process.sum(&RunFigures::ooms) == kUnknown64);
    const File file;
    REQUIRE(write_summaries(file.path(), {process}));
    const ProcessSummary read = read_back(file.path()).front();
    CHECK(read.devices[0].run.ooms == kUnknown64);
    CHECK(read.devices[1].run.ooms == 2);
}

TEST_CASE("a summary from a file equals the one that was written") {
    ProcessSummary process = rank_of(3);
    process.place.generation = 2;
    process.trace = {.size_bytes = 5, .modified_ns = 7};
    process.analysed = process.replayed = true;
    process.devices[0].failures = {{.time_ns = 9,
                                    .requested_bytes = kMiB,
                                    .verdict = "stitchable",
                                    .why = "why \"so\"",
                                    .at = "train.py:1 f",
                                    .culprit = "c",
                                    .remedy = "r"}};
    process.devices[0].settings = {
        {.name = "expandable_segments:True", .peak_reserved = kGiB, .class_words = "exact"},
        {.name = "A", .gets_past = true, .rest_fits = true},
        {.name = "B", .gets_past = true, .rest_fits = false}};
    process.devices[0].cards = {
        {.name = "a card of 16 GiB", .total_bytes = 16 * kGiB, .gets_past = true}};
    fail(&process, 77);
    process.pool_failures = 12;
    process.end_ns = 99;
    process.killed = {.alive_ns = 88, .seen_ns = 99};
    process.contexts = {
        {.device = 1, .uuid = "GPU-1", .bytes = kMiB, .measured = "m", .begin_ns = 3, .end_ns = 7},
        {.device = 2}};
    ProcessSummary import;
    import.file = "log.csv";
    import.import = "RMM log";
    forget_segments(&import.devices.emplace_back().run);
    import.devices[0].run.peak_requested = kUnknown64;
    const File file;
    REQUIRE(write_summaries(file.path(), {process, import}));
    CHECK(is_summaries_file(file.path()));
    const std::vector<ProcessSummary> read = read_back(file.path());
    CHECK(text_of(read) == text_of({process, import}));
    CHECK(read[0].devices[0].curve == process.devices[0].curve);
    CHECK(read[0].pool_failures == 12);
    CHECK(read[0].end_ns == process.end_ns);
    CHECK_FALSE(read[1].end_ns);
    CHECK(read[0].killed.alive_ns == 88u);
    CHECK(read[0].killed.seen_ns == 99u);
    CHECK_FALSE(read[1].killed.seen_ns);
    CHECK(read[0].contexts == process.contexts);
    CHECK(read[0].devices[0].failures == process.devices[0].failures);
    CHECK_FALSE(segments_known(read[1].devices[0].run));
    CHECK(std::filesystem::file_size(file.path()) < 2 * kMostSummaryBytes);
}

TEST_CASE("traces that cannot be read are kept in a file, and merge in any order") {
    const UnreadableTrace bad = {"bad.ftrace", "/job/bad.ftrace: \"no\" trace"};
    const UnreadableTrace other = {"other.ftrace", "other"};
    const ProcessSummary process = rank_of(3);
    const File file;
    std::filesystem::remove(file.path());  // it may have the number of a file that was read
    REQUIRE(write_summaries(file.path(), {process}, {bad, other}));
    std::vector<UnreadableTrace> unreadable;
    std::size_t processes = 0;
    REQUIRE(read_summaries(
        file.path(),
        [&](const ProcessSummary&) { ++processes; },
        [&](UnreadableTrace trace) { unreadable.push_back(std::move(trace)); }));
    CHECK(processes == 1);
    CHECK(unreadable == std::vector{bad, other});
    CHECK(read_back(file.path()).size() == 1);
    CHECK(merged({other, bad, other}, {process}) == unreadable);
    CHECK(merged(std::vector{UnreadableTrace{"bad.ftrace", "~"}, bad}, {}) == std::vector{bad});
    // A trace that has a summary can be read now.
    CHECK(merged(std::vector{UnreadableTrace{process.file, "why"}, bad}, {process}) ==
          std::vector{bad});
    CHECK(refusal_of(R"({"schema":1,"process_summaries":[
],"unreadable":[{"file":"../a","reason":""}]})") != "");
    CHECK(refusal_of(R"({"schema":1,"process_summaries":[
],"unreadable":[{"file":"a","reason":1}]})") != "");
    CHECK(refusal_of(R"({"schema":1,"process_summaries":[
],"unreadable":[{"file":"a","reason":"b"}]})") == "");
}

TEST_CASE("a summary takes at most 20 kB, whatever the process did") {
    Random random(5);
    for (const std::size_t devices : {1u, 2u, 4u, 8u, 16u, 31u}) {
        ProcessSummary process = rank_of(0);
        process.program = std::string(300, '"');
        process.file = std::string(255, '\\');
        process.devices.clear();
        for (std::size_t i = 0; i < devices; ++i) {
            ProcessDevice device = rank_of(0).devices[0];
            device.device = static_cast<DeviceId>(i);
            device.curve.reserved.assign(512, 9999);
            device.curve.allocated.assign(512, 9998);
            device.holders.assign(16, {std::string(160, '"'), random(), random()});
            device.failures.assign(4,
                                   {.why = std::string(400, '"'),
                                    .at = std::string(160, '"'),
                                    .culprit = std::string(400, '"'),
                                    .remedy = std::string(400, '"')});
            device.settings.assign(
                32, {.name = std::string(160, '"'), .class_words = std::string(160, '"')});
            device.cards = device.settings;
            process.devices.push_back(device);
        }
        CHECK(to_json_text(process).size() <= kMostSummaryBytes);
        const File file("{\"schema\":1,\"process_summaries\":[\n" + to_json_text(process) +
                        "\n]}\n");
        const std::vector<ProcessSummary> read = read_back(file.path());
        CHECK(read.front().identity() == process.identity());
        CHECK(read.front().devices.size() == devices);
    }
    // A usual process loses nothing.
    CHECK(to_json_text(rank_of(0)).size() < kMostSummaryBytes / 4);
}

TEST_CASE("summaries with impossible values are refused with the reason") {
    CHECK(refusal([](auto&) {}).empty());
    CHECK(refusal([](auto& json) { json["file"] = "../x"; }).find("'file'") != std::string::npos);
    CHECK(refusal([](auto& json) { json["process"] = -1; }).find("'process'") != std::string::npos);
    CHECK_FALSE(refusal([](auto& json) { json["rank"] = 1e99; }).empty());
    CHECK_FALSE(refusal([](auto& json) { json["ended"] = "well"; }).empty());
    CHECK_FALSE(refusal([](auto& json) { json["devices"] = 4; }).empty());
    CHECK_FALSE(refusal([](auto& json) { json["devices"][0]["index"] = 31; }).empty());
    CHECK_FALSE(refusal([](auto& json) { json["devices"][0].erase("ooms"); }).empty());
    CHECK_FALSE(refusal([](auto& json) { json["devices"][0]["curve"]["bin_ns"] = 0; }).empty());
    CHECK_FALSE(refusal([](auto& json) {
                    json["devices"][0]["curve"]["reserved"] = std::vector<int>(513, 1);
                }).empty());
    CHECK_FALSE(refusal([](auto& json) {
                    json["devices"][0]["waste_at_peak"]["slack"] = ~std::uint64_t{0};
                }).empty());
    CHECK_FALSE(refusal([](auto& json) {
                    json["devices"][0]["holders_at_peak"] = nlohmann::json::array({1});
                }).empty());
}

TEST_CASE("files that are not summaries are refused in one line") {
    const std::string begin = "{\"schema\":1,\"process_summaries\":[";
    for (const std::string& content : {std::string(),
                                       std::string("[]"),
                                       std::string("{}"),
                                       std::string("{\"schema\":2,\"process_summaries\":[]}"),
                                       begin,
                                       begin + "1]",
                                       begin + "{}]}",
                                       begin + std::string(100'000, '['),
                                       begin + "{\"file\":\"" + std::string(100'000, 'x') + "\"}]}",
                                       begin + std::string(100'000, ' '),
                                       begin + "{\"events\":1e999}]}"}) {
        const std::string why = refusal_of(content);
        INFO(content.substr(0, 60));
        CHECK_FALSE(why.empty());
        CHECK(why.find('\n') == std::string::npos);
    }
    CHECK(refusal_of(begin + "]}").empty());  // a job without processes
}

TEST_CASE("summaries that another program has written again with other white space are read") {
    const std::string summary = to_json_text(rank_of(0));
    for (const std::string& begin :
         {std::string("{\n  \"schema\": 1,\n  \"process_summaries\": ["),
          std::string(" { \"schema\" : 1 , \"process_summaries\" : [")}) {
        INFO(begin);
        CHECK(is_summaries_file(File(begin).path()));
        CHECK(refusal_of(begin + summary + "]}").empty());
    }
}

TEST_CASE("summaries of another schema are known as such, and the refusal says what to do") {
    const std::string summary = to_json_text(rank_of(0));
    for (const std::string& number :
         {std::string("0"), std::string("2"), std::string("123456789")}) {
        const std::string begin = "{\"schema\":" + number + ",\"process_summaries\":[";
        const File file(begin + summary + "]}");
        CHECK(is_summaries_file(file.path()));
        for (const std::string& content : {begin + summary + "]}", begin + "]}"}) {
            const std::string why = refusal_of(content);
            INFO(why);
            CHECK(why.find("reads schema 1. Make them again with this version: `fraganalyze "
                           "summarize TRACE -o FILE`.") != std::string::npos);
            CHECK(why.find('\n') == std::string::npos);
        }
    }
    for (const char* begin : {"{\"schema\":,\"process_summaries\":[",
                              "{\"schema\":1234567890,\"process_summaries\":[",
                              "{\"schema\":1",
                              "{\"schema\":-1,\"process_summaries\":["}) {
        CHECK_FALSE(is_summaries_file(File(begin).path()));
    }
}
