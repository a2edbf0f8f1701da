// A page never has more bytes than it may, and says what it leaves out. The values are random, so
// that they cannot be compressed.
#include "analyzer/report/page/page.h"
#include "sample.h"

#include <catch2/catch.hpp>

#include <random>

using namespace fragtrace::analyzer;
using namespace fragtrace::page_test;

namespace {

constexpr std::size_t kMostBytes = 60'000'000;
constexpr std::uint64_t kBase = 0x7000'0000'0000;

// Bytes and rows of the packs of all devices whose name begins like this.
struct Packs {
    std::size_t bytes = 0;
    std::size_t rows = 0;
};

Packs packs(const std::string& page, const std::string& name) {
    Packs sum;
    const nlohmann::json header = header_of(page);
    for (const nlohmann::json& device : header["devices"]) {
        for (const nlohmann::json& pack : device["packs"]) {
            const std::string id = pack["id"];
            if (id.find("-" + name) == std::string::npos) continue;
            const std::size_t begin = page.find("id=\"" + id + "\"");
            sum.bytes += page.find("</template>", begin) - begin;
            sum.rows += pack["rows"].get<std::size_t>();
        }
    }
    return sum;
}

bool says(const nlohmann::json& device, const std::string& text) {
    return notes_of(device).find(text) != std::string::npos;
}

PageData with_blocks(std::uint64_t count) {
    PageData data = small_page();
    PageDevice& device = data.devices[0];
    device.blocks = {};
    std::mt19937 random(1);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t end_ns = 10 * i + 1 + random() % 60'000;
        add_block(device, 10 * i, end_ns, end_ns, kBase + kMiB * i, 1 + random() % kMiB);
    }
    device.cards = {card_naming({17})};
    return data;
}

// Segments with random addresses, lives and sizes, one block in each.
void add_segments(PageDevice& device, std::size_t count, std::uint64_t end_ns) {
    std::mt19937_64 random(count);
    device.end_ns = end_ns;
    device.segments.clear();
    device.blocks = {};
    std::uint64_t address = kBase;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t start_ns = end_ns / 2 * i / count;
        const std::uint64_t stop_ns = start_ns + 1 + random() % (end_ns / 2);
        const std::uint64_t size_bytes = 1 + random() % (64 * kMiB);
        device.segments.push_back({.start_ns = start_ns,
                                   .end_ns = stop_ns,
                                   .address = address,
                                   .size_bytes = size_bytes,
                                   .stream = static_cast<std::uint16_t>(random() % 8)});
        add_block(device, start_ns, stop_ns, stop_ns, address, 1 + random() % size_bytes);
        address += size_bytes + 1 + random() % kGiB;
    }
}

BytesOverTime changes(std::size_t count, std::uint64_t end_ns) {
    std::mt19937_64 random(count);
    BytesOverTime memory;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t at_ns = end_ns / count * i + random() % (end_ns / count);
        memory.set(at_ns, random() % (1ull << 40));
    }
    return memory;
}

// Adds stacks of two frames with names that differ, and gives one to each block in turn.
void add_stacks(PageData& data, std::size_t count, std::size_t name_bytes) {
    std::mt19937_64 random(7);
    const auto name = [&] {
        std::string text(name_bytes, ' ');
        for (char& c : text)
            c = static_cast<char>('!' + random() % 90);
        return text;
    };
    const auto add = [&](std::uint32_t parent) {
        const auto node = static_cast<std::uint32_t>(data.stacks.size());
        data.stacks.push_back({parent, static_cast<std::uint32_t>(data.frames.size()), 0});
        data.frames.push_back({.function = name(), .file = "train.py", .line = node});
        data.frames.back().label = data.frames.back().function;
        return node;
    };
    std::uint32_t caller = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 1000 == 0) caller = add(0);
        add(caller);
    }
    std::uint32_t next = 1;
    for (PageDevice& device : data.devices) {
        for (std::uint32_t& stack : device.blocks.stack) {
            next = next + 1 < data.stacks.size() ? next + 1 : 1;
            stack = next;
        }
    }
}

}  // namespace

TEST_CASE("blocks that need more bytes than the file may have are left out, those named last") {
    PageData data = with_blocks(20'000);
    const auto file = [&](std::size_t byte_budget) {
        data.byte_budget = byte_budget;
        return *render_page(data);
    };
    const std::string whole = file(kMostBytes);
    CHECK(header_of(whole)["devices"][0]["blocks_left_out"] == 0);
    CHECK(header_of(whole)["devices"][0]["notes"].empty());
    const std::size_t budget = whole.size() - packs(whole, "blocks").bytes / 2;
    const std::string half = file(budget);
    CHECK(half.size() <= budget);
    const nlohmann::json header = header_of(half)["devices"][0];
    const auto kept = header["blocks"].get<std::size_t>();
    CHECK(kept + header["blocks_left_out"].get<std::size_t>() == 20'000);
    CHECK(kept > 5'000);
    CHECK(kept < 15'000);
    CHECK(says(header, "leaves out "));
    CHECK(header["cards"][0]["culprits"][0]["blocks"].size() == 1);
    // Eight devices share the bytes, and one with few blocks keeps all of them.
    for (std::uint32_t i = 1; i < 8; ++i) {
        data.devices.push_back(i == 7 ? small_page().devices[0] : data.devices[0]);
        data.devices[i].index = i;
    }
    const std::string eight = file(4 * budget);
    CHECK(eight.size() <= 4 * budget);
    CHECK(eight.size() > 3 * budget);
    const nlohmann::json shared = header_of(eight);
    REQUIRE(shared["devices"].size() == 8);
    for (std::size_t i = 0; i < 7; ++i)
        CHECK(shared["devices"][i]["blocks"] > 5'000);
    CHECK(shared["devices"][7]["blocks_left_out"] == 0);
}

TEST_CASE("segments that have no room are left out with their blocks, those named last") {
    PageData data = small_page();
    PageDevice& device = data.devices[0];
    add_segments(device, 1000, 1'000'000);
    device.cards = {card_naming({999})};
    device.segments[999].end_ns = device.segments[999].start_ns + 1;
    device.blocks.end_ns[999] = device.blocks.freed_ns[999] = device.segments[999].end_ns;
    const nlohmann::json all = header_of(*render_page(data))["devices"][0];
    CHECK(all["segments_left_out"] == 0);
    CHECK(all["notes"].empty());
    data.unit_budget = 400;
    const std::string page = *render_page(data);
    const nlohmann::json header = header_of(page)["devices"][0];
    CHECK(packs(page, "units").rows == 400);
    CHECK(header["segments_left_out"] == 600);
    CHECK(header["blocks"] == 400);
    CHECK(header["blocks_left_out"] == 600);
    CHECK(header["cards"][0]["culprits"][0]["blocks"] == std::vector<int>{399});
    std::vector<std::uint64_t> lives;
    for (std::size_t i = 0; i < 999; ++i)
        lives.push_back(device.segments[i].end_ns - device.segments[i].start_ns);
    std::sort(lives.begin(), lives.end());
    CHECK(says(header, "leaves out 600 segments (of expandable ones: pages), "));
    CHECK(
        says(header, "lived at most " + format_duration(lives[599]) + ", and the blocks in them"));
    // The overview is the same.
    const auto bins = [](const std::string& html) {
        const std::size_t begin = html.find("id=\"ft-0-bins\"");
        return html.substr(begin, html.find("</template>", begin) - begin);
    };
    data.unit_budget = 1000;
    CHECK(bins(page) == bins(*render_page(data)));
}

TEST_CASE("stacks that have no room become one, those with the fewest bytes x time first") {
    PageData data = with_blocks(20'000);
    add_stacks(data, 20'000, 100);
    PageDevice& device = data.devices[0];
    device.blocks.size_bytes[500] = kGiB;
    device.blocks.end_ns[500] = kNeverNs;
    device.blocks.freed_ns[500] = kNeverNs;
    device.end_ns = 1'000'000;
    device.cards[0].culprits[0].stack = device.blocks.stack[17];
    device.stack_categories = {{device.blocks.stack[500], 0}, {device.blocks.stack[1], 0}};
    const nlohmann::json all = header_of(*render_page(data));
    CHECK(all["stacks"]["parent"].size() == data.stacks.size());
    data.byte_budget = 4'000'000;
    const std::string page = *render_page(data);
    CHECK(page.size() <= data.byte_budget);
    const nlohmann::json header = header_of(page);
    const nlohmann::json& first = header["devices"][0];
    const nlohmann::json& frames = header["frames"];
    const auto label = [&](std::size_t stack) {
        const auto frame = header["stacks"]["frame"][stack].get<std::size_t>();
        return header["strings"][frames["label"][frame].get<std::size_t>()].get<std::string>();
    };
    const std::size_t stacks = header["stacks"]["parent"].size();
    CHECK(stacks > 2'000);
    CHECK(stacks < 15'000);
    const std::string other =
        label(stacks - 1).find("other stacks") != std::string::npos ? label(stacks - 1) : label(1);
    CHECK(other.find("other stacks") != std::string::npos);
    const std::string count = other.substr(0, other.find(' '));
    CHECK(says(first, count + " call stacks, with "));
    CHECK(first["blocks"].get<std::size_t>() + first["blocks_left_out"].get<std::size_t>() ==
          20'000);
    const auto name_of = [&](std::size_t block) {
        return data.frames[data.stacks[device.blocks.stack[block]].frame].label;
    };
    CHECK(label(first["cards"][0]["culprits"][0]["stack"]) == name_of(17));
    CHECK(label(first["stack_categories"]["stack"][0]) == name_of(500));
    for (std::size_t i = 1; i < stacks; ++i)
        REQUIRE(header["stacks"]["parent"][i] < i);
}

TEST_CASE("eight devices that would need twice the bytes of the file share them") {
    constexpr std::uint64_t kEnd = 3'000'000'000;
    PageData data = small_page();
    PageDevice& device = data.devices[0];
    add_segments(device, 30'000, kEnd);
    device.pinned = changes(50'000, kEnd);
    device.others = changes(40'000, kEnd);
    data.devices.resize(8, device);
    add_stacks(data, 20'000, 200);
    data.byte_budget = 7'000'000;
    const Result<std::string> page = render_page(data);
    REQUIRE(page);
    CHECK(page->size() <= data.byte_budget);
    CHECK(page->size() > data.byte_budget / 5 * 4);
    const nlohmann::json header = header_of(*page);
    REQUIRE(header["devices"].size() == 8);
    for (const nlohmann::json& each : header["devices"]) {
        CHECK(each["segments_left_out"] > 5'000);
        CHECK(each["segments_left_out"] < 25'000);
        CHECK(each["blocks"] > 2'000);
        CHECK(each["part_ns"]["pinned"] > 0);
        CHECK(each["part_ns"]["managed"] == 0);
        CHECK(says(each, "Pinned memory changed 50,000 times. The file has one value for each "));
        CHECK(says(each, "The address axis has 2"));
        CHECK(each["axis"].size() <= 10'000);
    }
}

TEST_CASE("a page of a job leaves out processes, sentences and traces beyond a limit") {
    constexpr std::uint64_t kEnd = 3'000'000'000;
    PageData data = small_page();
    data.devices.clear();
    data.bytes_to_come = 10'000'000;
    PageWriter writer;
    for (std::size_t i = 0; i < 8; ++i) {
        data.processes.push_back({"p", "", std::string(10'000, '<'), {}});
        PageData part = data;
        part.devices.resize(1);
        part.devices[0].process = i;
        add_segments(part.devices[0], 5'000 + i, kEnd);
        REQUIRE(writer.add_devices(part, 1.0 / static_cast<double>(8 - i)));
    }
    for (std::size_t i = 0; i < 12'000; ++i) {
        PageRank row;
        row.file = std::string(300, 'f');
        row.command = std::string(200, 'c');
        row.device = i % 1500 == 0 ? i / 1500 : kPageNoDevice;
        row.reserved_heat.assign(128, 77);
        row.allocated_heat.assign(128, 77);
        data.ranks.push_back(row);
        data.job.push_back({PageJobRowKind::kRow, "row", {{"text", {i}}}});
        data.unreadable.push_back({"bad.ftrace", "no trace"});
    }
    const Result<std::string> page = writer.finish(data);
    REQUIRE(page);
    CHECK(page->size() <= kMostBytes);
    const nlohmann::json header = header_of(*page);
    CHECK(header["ranks"].size() == 10'000);
    std::size_t shown = 0;
    for (const nlohmann::json& row : header["ranks"])
        shown += row["device"].is_null() ? 0 : 1;
    CHECK(shown == 8);
    CHECK(header["unreadable"].size() == 1000);
    std::string job;
    for (const nlohmann::json& row : header["job"]) {
        for (const nlohmann::json& part : row["parts"]) {
            job += part["text"].get<std::string>() + "\n";
            for (const nlohmann::json& rank : part["ranks"])
                REQUIRE(rank < 10'000);
        }
    }
    CHECK(job.find("this file leaves out 2,000 rows of processes\n") != std::string::npos);
    CHECK(job.find("this file leaves out 11,000 sentences about the job\n") != std::string::npos);
    CHECK(job.find("this file leaves out 11,000 traces that cannot be read\n") !=
          std::string::npos);
    CHECK(header["devices"][7]["blocks"] == 5'007);
}

TEST_CASE("texts are cut if the bytes of the file do not suffice for them") {
    PageData data = small_page();
    data.devices[0].lines = {{"device", std::string(3'000'000, 'd')}, {"short", "text"}};
    data.processes[0].command = std::string(500'000, '<');  // six bytes each
    CHECK(render_page(data)->size() > 6'000'000);
    data.byte_budget = 500'000;
    const Result<std::string> page = render_page(data);
    REQUIRE(page);
    CHECK(page->size() <= data.byte_budget);
    const nlohmann::json header = header_of(*page);
    const std::string line = header["devices"][0]["lines"][0]["text"];
    CHECK(line.ends_with("d... (cut: 3,000,000 bytes)"));
    CHECK(header["devices"][0]["lines"][1]["text"] == "text");
    data.byte_budget = 10'000;  // less than the page's program
    CHECK_FALSE(render_page(data));
}

// Some 30 s, 4 GiB: run it by its name.
TEST_CASE("five million segments, changes and a million stacks stay below 60 MB", "[.large]") {
    constexpr std::uint64_t kEnd = 60'000'000'000;
    PageData data = small_page();
    PageDevice& device = data.devices[0];
    add_segments(device, 5'000'000, kEnd);
    device.pinned = changes(5'000'000, kEnd);
    add_stacks(data, 1'000'000, 300);
    const Result<std::string> page = render_page(data);
    REQUIRE(page);
    const nlohmann::json header = header_of(*page)["devices"][0];
    WARN(page->size() << " bytes\n" << notes_of(header));
    CHECK(page->size() <= kMostBytes);
    CHECK(packs(*page, "units").rows + header["segments_left_out"].get<std::size_t>() == 5'000'000);
    CHECK(header["blocks"].get<std::size_t>() + header["blocks_left_out"].get<std::size_t>() ==
          5'000'000);
}
