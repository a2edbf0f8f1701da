// Encoded data decodes to the same data, and damaged data is refused.
#include <fragtrace/codec.h>

#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <vector>

using namespace fragtrace;

namespace {

EventRecord random_event(std::mt19937_64& random, uint64_t sequence) {
    const auto any = [&]() -> uint64_t {
        switch (random() % 4) {
            case 0:
                return 0;
            case 1:
                return kUnknown64;
            case 2:
                return random() % 100000;
            default:
                return random();
        }
    };
    EventRecord event{};
    event.sequence = sequence;
    event.time_ns = any();
    event.address = any();
    event.size = any();
    event.extra = any();
    event.stream = any();
    event.native_stack = static_cast<uint32_t>(any());
    event.python_stack = static_cast<uint32_t>(any());
    event.thread = static_cast<uint32_t>(any());
    event.duration_ns = static_cast<uint32_t>(any());
    event.device = static_cast<uint16_t>(any());
    event.kind = static_cast<EventKind>(random() % 256);
    event.flags = static_cast<uint8_t>(random());
    return event;
}

std::vector<uint8_t> encoded(const std::vector<EventRecord>& events) {
    std::vector<uint8_t> scratch(event_scratch_bytes(events.size()));
    std::vector<uint8_t> bytes(events.size() * kMaxVarintBytes * kEventColumnCount + 200);
    ByteWriter out(bytes.data(), bytes.size());
    REQUIRE(encode_events([&](size_t i) -> const EventRecord& { return events[i]; },
                          events.size(),
                          scratch.data(),
                          scratch.size(),
                          &out));
    bytes.resize(out.size());
    return bytes;
}

}  // namespace

TEST_CASE("random events with gaps in the sequence decode unchanged") {
    std::mt19937_64 random(1);
    for (int round = 0; round < 200; ++round) {
        std::vector<EventRecord> events;
        uint64_t sequence = 1 + random() % 1000;
        for (size_t i = 0; i < 1 + random() % 300; ++i) {
            events.push_back(random_event(random, sequence));
            sequence += 1 + (random() % 8 == 0 ? random() % 1000 : 0);
        }
        const std::vector<uint8_t> bytes = encoded(events);
        size_t next = 0;
        REQUIRE(decode_events(bytes.data(),
                              bytes.size(),
                              events[0].sequence,
                              static_cast<uint32_t>(events.size()),
                              [&](const EventRecord& event) {
                                  REQUIRE(memcmp(&event, &events[next++], sizeof event) == 0);
                              }));
        REQUIRE(next == events.size());
    }
}

TEST_CASE("random stack nodes decode unchanged") {
    std::mt19937_64 random(2);
    std::vector<StackNode> nodes(1);
    for (uint32_t i = 1; i < 2000; ++i) {
        nodes.push_back({static_cast<uint32_t>(random() % i),
                         static_cast<uint32_t>(random()),
                         random() % 2 == 0 ? random() : kPythonFrame | random() % 1000});
    }
    std::vector<uint8_t> bytes(nodes.size() * 30);
    ByteWriter out(bytes.data(), bytes.size());
    REQUIRE(encode_nodes(nodes.data(), 700, 1300, &out));
    std::vector<StackNode> back(1300);
    REQUIRE(decode_nodes(bytes.data(), out.size(), 700, 1300, back.data()));
    CHECK(memcmp(back.data(), nodes.data() + 700, 1300 * sizeof(StackNode)) == 0);
}

TEST_CASE("code and module records decode unchanged") {
    uint8_t bytes[400];
    ByteWriter out(bytes, sizeof bytes);
    const std::string function = "Model.forward";
    const std::string file(200, 'f');
    REQUIRE(encode_code(
        {kMaxCodeId, 77, function.data(), function.size(), file.data(), file.size()}, &out));
    const uint8_t id[] = {1, 2, 3};
    REQUIRE(
        encode_module({0x7f0000001000, 0x7f0000002000, 0x7f0000000000, "/lib/x", 6, id, 3}, &out));
    ByteReader reader(bytes, out.size());
    CodeRecord code{};
    REQUIRE(decode_code(&reader, &code));
    CHECK(std::string(code.function, code.function_bytes) == function);
    CHECK(std::string(code.file, code.file_bytes) == file);
    CHECK(code.first_line == 77);
    ModuleRecord module{};
    REQUIRE(decode_module(&reader, &module));
    CHECK(module.end == 0x7f0000002000);
    CHECK(module.build_id_bytes == 3);
    CHECK(reader.left() == 0);
}

TEST_CASE("a module that would end before it begins is refused") {
    uint8_t bytes[100];
    for (const uint64_t length : {uint64_t{4096}, ~uint64_t{0} - 4095}) {
        ByteWriter out(bytes, sizeof bytes);
        out.varint(0x10000);
        out.varint(length);
        out.varint(0);
        out.text("/lib/x", 6);
        out.text("", 0);
        ByteReader reader(bytes, out.size());
        ModuleRecord module{};
        CHECK(decode_module(&reader, &module) == (length == 4096));
    }
}

TEST_CASE("reading a damaged payload does no harm") {
    std::mt19937_64 random(3);
    std::vector<EventRecord> events;
    for (uint64_t i = 0; i < 200; ++i) {
        events.push_back(random_event(random, i + 1));
    }
    const std::vector<uint8_t> good = encoded(events);
    std::vector<StackNode> nodes(5000);
    uint64_t refused = 0;
    for (int round = 0; round < 3000; ++round) {
        std::vector<uint8_t> bad = good;
        if (round % 2 == 0) {
            bad.resize(random() % bad.size());
        }
        for (uint64_t flips = random() % 8; flips > 0 && !bad.empty(); --flips) {
            bad[random() % bad.size()] = static_cast<uint8_t>(random());
        }
        // A copy of the exact size, so that a read past its end leaves the heap block.
        const std::vector<uint8_t> exact(bad.begin(), bad.end());
        uint64_t seen = 0;
        const bool whole =
            decode_events(exact.data(), exact.size(), 1, 200, [&](const EventRecord&) { ++seen; });
        REQUIRE(seen <= 200);
        refused += whole ? 0 : 1;
        decode_nodes(exact.data(), exact.size(), 1, 5000, nodes.data());
        ByteReader code_reader(exact.data(), exact.size());
        CodeRecord code{};
        while (code_reader.left() != 0 && decode_code(&code_reader, &code)) {
        }
        ByteReader module_reader(exact.data(), exact.size());
        ModuleRecord module{};
        while (module_reader.left() != 0 && decode_module(&module_reader, &module)) {
        }
    }
    CHECK(refused > 1000);
}

TEST_CASE("the checksum equals zlib's") {
    CHECK(crc32("123456789", 9) == 0xcbf43926u);
}
