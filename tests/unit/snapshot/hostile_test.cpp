// Snapshots that are cut off, changed byte by byte, or made up. Each gives a clear error in one
// line or a timeline. Nothing crashes or hangs, and the data read is consistent.
#include "analyzer/analysis/analyze.h"
#include "analyzer/report/text/text.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/units.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <random>
#include <string>
#include <unistd.h>
#include <zlib.h>

using namespace fragtrace::analyzer;
using fragtrace::testing::PickleWriter;
using fragtrace::testing::SnapshotWriter;
using fragtrace::testing::TemporaryFolder;

namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;

std::string some_snapshot() {
    SnapshotWriter writer;
    writer.segments = {
        {.address = kBase, .blocks = {{512, "active_allocated", 100}, {2 * kMiB - 512}}},
        {.address = kBase + 4 * kMiB,
         .blocks = {{8 * kMiB, "active_pending_free", 8 * kMiB}, {12 * kMiB}}}};
    writer.entries = {{"segment_alloc", kBase, 2 * kMiB},
                      {"alloc", kBase, 100},
                      {"alloc", kBase + 512, 700},
                      {"free_requested", kBase + 512, 700},
                      {"free_completed", kBase + 512, 700},
                      {"segment_alloc", kBase + 4 * kMiB, 20 * kMiB},
                      {"alloc", kBase + 4 * kMiB, 8 * kMiB},
                      {"oom", 5 * kMiB, 40 * kMiB},
                      {"free_requested", kBase + 4 * kMiB, 8 * kMiB},
                      {"snapshot", 0, 8 * kMiB}};
    return writer.pickle();
}

void save(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

// True: it gave a timeline. False: it was refused in one line.
bool is_read(const std::string& path) {
    const auto timeline = read_input(path);
    if (!timeline.ok()) {
        CHECK(timeline.error().code == ErrorCode::kInput);
        CHECK(timeline.error().message.find('\n') == std::string::npos);
        CHECK(timeline.error().message.find(path) == 0);
        return false;
    }
    CHECK(timeline->partner.size() == timeline->events.size());
    for (const Origin& origin : timeline->origins) {
        CHECK(origin.python_stack < timeline->nodes.size());
    }
    return true;
}

std::string gzip(const std::string& bytes) {
    z_stream stream = {};
    REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::string packed(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<unsigned>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<unsigned>(packed.size());
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

}  // namespace

TEST_CASE("a snapshot cut off anywhere is refused with the byte position", "[hostile]") {
    TemporaryFolder folder;
    const std::string path = folder.file("x.pickle");
    const std::string whole = some_snapshot();
    save(path, whole);
    REQUIRE(is_read(path));
    for (std::size_t size = 2; size < whole.size(); ++size) {
        save(path, whole.substr(0, size));
        INFO("cut at " << size);
        const auto timeline = read_input(path);
        REQUIRE_FALSE(timeline.ok());
        REQUIRE(timeline.error().message.find("byte ") != std::string::npos);
    }
}

TEST_CASE("a snapshot with any changed byte is refused or gives a timeline", "[hostile]") {
    TemporaryFolder folder;
    const std::string path = folder.file("x.pickle");
    const std::string whole = some_snapshot();
    std::mt19937 random(1);
    std::size_t refused = 0;
    for (std::size_t at = 2; at < whole.size(); ++at) {
        std::string altered = whole;
        altered[at] = static_cast<char>(random());
        save(path, altered);
        INFO("byte " << at);
        refused += is_read(path) ? 0 : 1;
    }
    CHECK(refused > whole.size() / 10);
}

TEST_CASE("a snapshot changed in several places is analyzed or refused", "[hostile]") {
    TemporaryFolder folder;
    const std::string path = folder.file("x.pickle");
    const std::string whole = some_snapshot();
    const Terminal terminal(STDOUT_FILENO, ColorChoice::kNever);
    for (unsigned seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        std::string altered = whole;
        for (unsigned i = 0; i <= seed % 4; ++i) {
            altered[2 + random() % (altered.size() - 2)] = static_cast<char>(random());
        }
        save(path, altered);
        INFO("seed " << seed);
        const auto analysis = analyze(path, {});
        if (analysis.ok()) {
            CHECK_FALSE(report_text(**analysis, terminal).empty());
        }
    }
}

TEST_CASE("a gzip snapshot is read, a damaged one is refused", "[hostile]") {
    TemporaryFolder folder;
    const std::string path = folder.file("x.pickle.gz");
    const std::string packed = gzip(some_snapshot());
    save(path, packed);
    REQUIRE(is_read(path));
    // The last bytes are a checksum after the end of the pickle.
    for (std::size_t size = 2; size + 16 < packed.size(); size += 7) {
        save(path, packed.substr(0, size));
        INFO("cut at " << size);
        CHECK_FALSE(is_read(path));
    }
    save(path, packed.substr(0, packed.size() / 2));
    CHECK(read_input(path).error().message.find("gzip data end too early") != std::string::npos);
    std::string altered = packed;
    altered[packed.size() / 2] = static_cast<char>(altered[packed.size() / 2] ^ 0x55);
    save(path, altered);
    CHECK_FALSE(is_read(path));
    save(path, gzip("no pickle"));
    CHECK_FALSE(is_read(path));
}

TEST_CASE("a pickle without a snapshot is refused", "[hostile]") {
    TemporaryFolder folder;
    const std::string path = folder.file("x.pickle");
    PickleWriter list;
    list.begin_list().number(1).end_list();
    PickleWriter dict;
    dict.begin_dict().text("weights").number(1).end_dict();
    PickleWriter twice;
    twice.begin_dict().text("segments").begin_list();
    twice.begin_dict().text("segments").begin_list().end_list().end_dict();
    twice.end_list().end_dict();
    for (const PickleWriter& one : {list, dict, twice}) {
        save(path, one.finish());
        CHECK_FALSE(is_read(path));
    }
}

TEST_CASE("the byte position of an error counts from the beginning of a long file", "[hostile]") {
    TemporaryFolder folder;
    const std::string path = folder.file("x.pickle");
    constexpr std::size_t kBytes = 3'500'000;  // more than one read
    save(path, "\x80\x04" + std::string(kBytes, 'N') + "c");
    const auto refused = read_input(path);
    REQUIRE_FALSE(refused.ok());
    INFO(refused.error().message);
    CHECK(refused.error().message.find("byte " + std::to_string(kBytes + 2)) != std::string::npos);
}

TEST_CASE("a pickle that would run code is refused before anything else", "[hostile]") {
    TemporaryFolder folder;
    const std::string path = folder.file("x.pickle");
    save(path, std::string("\x80\x04") + "cos\nsystem\n(S'false'\ntR.");
    const auto timeline = read_input(path);
    REQUIRE_FALSE(timeline.ok());
    CHECK(timeline.error().message.find("would load or call code") != std::string::npos);
}
