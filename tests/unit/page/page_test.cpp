#include "analyzer/report/page/page.h"

#include "analyzer/report/page/page_columns.h"
#include "sample.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace fragtrace::analyzer;
using namespace fragtrace::page_test;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

}  // namespace

TEST_CASE("base64 is right for lengths of every remainder") {
    const auto encode = [](const std::string& raw) {
        std::string text;
        append_base64({reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size()}, text);
        return text;
    };
    CHECK(encode("").empty());
    CHECK(encode("f") == "Zg==");
    CHECK(encode("fo") == "Zm8=");
    CHECK(encode("foo") == "Zm9v");
    CHECK(encode("\xff\xfe\xfd\xfc") == "//79/A==");
}

TEST_CASE("text from a trace cannot end an element or add one") {
    PageData data = small_page();
    const std::string evil = "</script><script>alert(1)</script><!--";
    data.title = evil;
    data.processes = {{evil, evil, evil, {evil}}};
    data.frames[0] = {evil, evil, 1, true};
    data.devices[0].name = evil;
    data.devices[0].markers = {{10, PageMarkerKind::kOom, evil}};
    PageCard card;
    card.sentence = evil;
    card.details = {evil};
    data.devices[0].cards = {card};
    PageRank row;
    row.file = row.program = row.command = row.ended = evil;
    data.ranks = {row};
    data.unreadable = {{evil, evil}};
    const Result<std::string> html = render_page(data);
    REQUIRE(html);
    CHECK(html->find("<script>alert") == std::string::npos);
    CHECK(html->find("<!--") == std::string::npos);
    CHECK(count(*html, "<script") == count(*html, "</script>"));
    CHECK(header_of(*html)["title"] == evil);
    CHECK(header_of(*html)["devices"][0]["markers"][0]["text"] == evil);
}

TEST_CASE("a comparison of two runs is written, and text in it cannot end an element") {
    PageData data = small_page();
    const std::string evil = "</script><script>alert(1)</script>";
    data.comparison.emplace().runs = {evil, "b"};
    PageComparedDevice& device = data.comparison->devices.emplace_back();
    device.devices = {kPageNoDevice, 0};
    device.peaks_ns[1] = 500;
    device.headline = evil;
    device.lines.push_back({HeldBy{.label = evil, .bytes = 3}, std::nullopt, {}});
    data.comparison->places = {{.text = evil, .device = 0, .b = TimeSpan{100, 200}}};
    data.comparison->phases = {{.name = evil, .only_in = "A"}};
    data.comparison->settings = {{evil, "1", "2"}};
    const Result<std::string> html = render_page(data);
    REQUIRE(html);
    CHECK(count(*html, "<script") == count(*html, "</script>"));
    const nlohmann::json written = header_of(*html)["comparison"];
    CHECK(written["runs"] == nlohmann::json{evil, "b"});
    CHECK(written["devices"][0]["devices"] == nlohmann::json{nullptr, 0});
    CHECK(written["devices"][0]["peaks_ns"] == nlohmann::json{nullptr, 500});
    CHECK(written["devices"][0]["lines"][0]["a"] == 3);
    CHECK(written["devices"][0]["lines"][0]["b"].is_null());
    CHECK(written["places"][0]["times_ns"] == nlohmann::json::parse("[null, [100, 200]]"));
    CHECK(header_of(*render_page(small_page()))["comparison"].is_null());

    data.comparison->devices[0].devices[0] = 1;
    CHECK_FALSE(render_page(data));
}

TEST_CASE("invalid UTF-8 and control characters do not break the page") {
    PageData data = small_page();
    data.processes[0].command = std::string("a\xff\xfe\0b\x01", 6);
    const Result<std::string> html = render_page(data);
    REQUIRE(html);
    CHECK(header_of(*html)["processes"][0]["command"].get<std::string>().front() == 'a');
}

TEST_CASE("the page contains no URL except the SVG name space") {
    Result<std::string> html = render_page(small_page());
    REQUIRE(html);
    // The name space of SVG, which saved pictures carry. Nothing is fetched from that address.
    const std::string svg = "http://www.w3.org/2000/svg";
    REQUIRE(count(*html, svg) == 1);
    html->erase(html->find(svg), svg.size());
    CHECK(html->find("http://") == std::string::npos);
    CHECK(html->find("https://") == std::string::npos);
    CHECK(html->find("default-src 'none'; script-src 'sha256-") != std::string::npos);
}

TEST_CASE("the last tick of a trace is never the value that means \"never\"") {
    PageData data = small_page();
    for (const auto& [end_ns, tick_ns] : {std::pair(0xfffffffeull, 1),
                                          std::pair(0xffffffffull, 10),
                                          std::pair(0x9fffffff5ull, 10)}) {
        data.devices[0].end_ns = end_ns;
        const Result<std::string> html = render_page(data);
        REQUIRE(html);
        CHECK(header_of(*html)["devices"][0]["tick_ns"] == tick_ns);
    }
}

TEST_CASE("the same data gives the same file") {
    CHECK(*render_page(small_page()) == *render_page(small_page()));
}

TEST_CASE("contradictory data is refused") {
    PageData data = small_page();
    SECTION("columns of unequal length") {
        data.devices[0].blocks.stack.clear();
    }
    SECTION("a stack that does not exist") {
        data.devices[0].blocks.stack[0] = 9;
    }
    SECTION("blocks out of order") {
        add_block(data.devices[0], 5, 6, 6, 0x7000'0000'0000, kMiB);
    }
    SECTION("a card with a block that does not exist") {
        data.devices[0].cards = {card_naming({7})};
    }
    SECTION("a stack before its parent") {
        data.stacks = {{}, {2, 0}, {0, 0}};
    }
    const Result<std::string> html = render_page(data);
    REQUIRE_FALSE(html);
    CHECK(html.error().code == ErrorCode::kOutput);
}

TEST_CASE("times of many hours fit into the page's ticks") {
    PageData data = small_page();
    data.devices[0].end_ns = 40ull * 3600 * 1'000'000'000;
    const nlohmann::json device = header_of(*render_page(data))["devices"][0];
    const auto tick_ns = device["tick_ns"].get<std::uint64_t>();
    CHECK(tick_ns == 100'000);
    CHECK(device["end_ns"].get<std::uint64_t>() / tick_ns < 0xffffffffu);
}

TEST_CASE("beyond the block budget, long-lived blocks and those named by cards stay") {
    PageData data = small_page();
    PageDevice& device = data.devices[0];
    device.blocks = {};
    add_block(device, 10, 20, 20, 0x7000'0000'0000, kMiB);  // named by the card
    add_block(device, 30, 90, 90, 0x7000'0000'0000, kMiB);  // left out
    add_block(device, 100, kNeverNs, kNeverNs, 0x7000'0000'0000, kMiB);
    device.cards = {card_naming({0, 2})};
    data.block_budget = 2;
    const nlohmann::json header = header_of(*render_page(data))["devices"][0];
    CHECK(header["blocks"] == 2);
    CHECK(header["blocks_left_out"] == 1);
    CHECK(notes_of(header).find("leaves out 1 block, 1 MiB in all, that lived at most 60 ns") !=
          std::string::npos);
    CHECK(header["bytes_left_out"] == kMiB);
    CHECK(header["cards"][0]["culprits"][0]["blocks"] == std::vector<int>{0, 1});
    add_block(device, 100, 101, 101, 0x7000'0000'0000 + 8 * kMiB, 2 * kMiB);
    const nlohmann::json more = header_of(*render_page(data))["devices"][0];
    CHECK(more["blocks_left_out"] == 2);
    CHECK(more["bytes_left_out"] == 3 * kMiB);
}

TEST_CASE("devices written one process at a time give the same file") {
    PageData whole = small_page();
    whole.processes.push_back({"second", "pid 2", "", {}});
    whole.devices.push_back(whole.devices[0]);
    whole.devices[1].process = 1;
    PageRank row;
    row.command = "fraganalyze x";
    whole.ranks = {row, row};
    whole.ranks[1].device = 1;
    whole.unreadable = {{"bad.ftrace", "no trace"}};
    PageData part = whole;
    PageWriter writer;
    for (const PageDevice& device : whole.devices) {
        part.devices = {device};
        REQUIRE(writer.add_devices(part));
    }
    CHECK(writer.devices() == 2);
    part.devices.clear();
    const Result<std::string> page = writer.finish(part);
    REQUIRE(page);
    CHECK(*page == *render_page(whole));
    const nlohmann::json header = header_of(*page);
    CHECK(header["processes"][1]["title"] == "second");
    CHECK(header["devices"][1]["process"] == 1);
    CHECK(header["ranks"][0]["device"].is_null());
    CHECK(header["ranks"][0]["capacity"].is_null());
    CHECK(header["ranks"][1]["device"] == 1);
    CHECK(header["unreadable"][0]["reason"] == "no trace");
}

TEST_CASE("a process or a device that does not exist is refused") {
    PageData data = small_page();
    SECTION("a device's process") {
        data.devices[0].process = 1;
    }
    SECTION("a process's device") {
        data.ranks.emplace_back().device = 1;
    }
    CHECK_FALSE(render_page(data));
}

TEST_CASE("a device without any data still gives a page") {
    PageData data;
    data.processes.resize(1);
    data.devices.resize(1);
    CHECK(render_page(data));
}
