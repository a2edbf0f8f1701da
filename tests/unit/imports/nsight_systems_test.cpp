// The SQLite export of Nsight Systems becomes a timeline of requests to the driver. Tables and
// columns are those of Nsight Systems' SQLite Schema Reference.
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page_content.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/terminal.h"
#include "tests/unit/imports/import_file.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <sqlite3.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;

namespace {

// The bytes of a database that these statements make.
std::string database(const std::string& statements) {
    sqlite3* database = nullptr;
    sqlite3_open(":memory:", &database);
    char* error = nullptr;
    if (sqlite3_exec(database, statements.c_str(), nullptr, nullptr, &error) != SQLITE_OK) {
        FAIL(error);
    }
    sqlite3_int64 size_bytes = 0;
    unsigned char* const bytes = sqlite3_serialize(database, "main", &size_bytes, 0);
    std::string content(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size_bytes));
    sqlite3_free(bytes);
    sqlite3_close(database);
    return content;
}

const std::string kEvents =
    "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT "
    "NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc "
    "INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType "
    "INTEGER NOT NULL, name TEXT, correlationId INTEGER, streamId INTEGER, localMemoryPoolAddress "
    "INTEGER, localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER, "
    "localMemoryPoolUtilizedSize INTEGER, importedMemoryPoolAddress INTEGER, "
    "importedMemoryPoolProcessId INTEGER);";

constexpr std::int64_t kProcess = std::int64_t{4711} << 24;

struct Row {
    int time_ns = 0;
    int address = 0;
    int bytes = 0;
    int kind = 2;
    int operation = 0;  // 0 = allocation
    int device = 0;
    int correlation = 0;
    int stream = 0;
    int pool = 0;
    std::int64_t process = kProcess;
};

std::string insert(const Row& row) {
    return fmt::format(
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, contextId, address, "
        "pc, bytes, memKind, memoryOperationType, correlationId, streamId, localMemoryPoolAddress) "
        "VALUES ({}, {}, {}, 1, {}, 0, {}, {}, {}, {}, {}, {});",
        row.time_ns,
        row.process,
        row.device,
        row.address,
        row.bytes,
        row.kind,
        row.operation,
        row.correlation,
        row.stream,
        row.pool == 0 ? "NULL" : std::to_string(row.pool));
}

std::string rows(const std::vector<Row>& list) {
    std::string statements;
    for (const Row& row : list) {
        statements += insert(row);
    }
    return statements;
}

std::vector<std::string> kinds_of(const Timeline& timeline) {
    std::vector<std::string> words;
    for (const Event& event : timeline.events) {
        words.push_back(
            fmt::format("{} {} {}", static_cast<int>(event.kind), event.address, event.size_bytes));
    }
    return words;
}

std::string word(EventKind kind, int address, int bytes) {
    return fmt::format("{} {} {}", static_cast<int>(kind), address, bytes);
}

}  // namespace

TEST_CASE("each row of an Nsight Systems export becomes a request to the driver", "[imports]") {
    const Timeline timeline = timeline_of(
        database(kEvents +
                 rows({{.time_ns = 100, .address = 4096, .bytes = 1000},
                       {.time_ns = 300, .address = 8192, .bytes = 512, .kind = 1},
                       {.time_ns = 200, .address = 65536, .bytes = 2048, .kind = 4},
                       {.time_ns = 400, .address = 9, .bytes = 300, .kind = 3},
                       {.time_ns = 500, .address = 4096, .bytes = 1000, .operation = 1},
                       {.time_ns = 600, .address = 8192, .bytes = 512, .kind = 1, .operation = 1},
                       {.time_ns = 700, .address = 65536, .bytes = 2048, .kind = 4, .operation = 1},
                       {.time_ns = 800, .address = 9, .bytes = 300, .kind = 3, .operation = 1}})));
    CHECK(kinds_of(timeline) ==
          std::vector<std::string>{word(EventKind::kBlockAlloc, 4096, 1000),
                                   word(EventKind::kManagedAlloc, 65536, 2048),
                                   word(EventKind::kHostAlloc, 8192, 512),
                                   word(EventKind::kArrayAlloc, 9, 300),
                                   word(EventKind::kBlockFree, 4096, 0),
                                   word(EventKind::kHostFree, 8192, 0),
                                   word(EventKind::kDeviceFree, 65536, 0),
                                   word(EventKind::kArrayFree, 9, 0)});
    CHECK(timeline.events[0].time_ns == 0);
    CHECK(timeline.events[7].time_ns == 700);
    CHECK(timeline.partner[0] == 4);
    CHECK(timeline.fact("import") == "Nsight Systems export");
    CHECK(timeline.start_unix_ns == 0);
    CHECK(timeline.damage.notes.empty());
}

TEST_CASE("stream-ordered memory of an Nsight Systems export has its stream", "[imports]") {
    const Timeline timeline = timeline_of(database(
        kEvents +
        rows({{.time_ns = 1, .address = 4096, .bytes = 512, .stream = 7, .pool = 240},
              {.time_ns = 2, .address = 4096, .bytes = 512, .operation = 1, .pool = 240}})));
    CHECK(kinds_of(timeline) == std::vector<std::string>{word(EventKind::kBlockAlloc, 4096, 512),
                                                         word(EventKind::kBlockFree, 4096, 0)});
    CHECK(timeline.streams[timeline.events[0].stream] == 7);
    CHECK(timeline.fact("import.lacks.04").starts_with("the moment at which a stream-ordered"));
    CHECK(timeline.partner[0] == 1);
}

TEST_CASE("calls, call chains, ranges and the start of the session belong to their events",
          "[imports]") {
    const std::int64_t thread = kProcess | 4712;
    const std::string content = database(
        kEvents +
        rows({{.time_ns = 100, .address = 4096, .bytes = 1000, .correlation = 5},
              {.time_ns = 300, .address = 8192, .bytes = 512, .correlation = 6}}) +
        fmt::format("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, "
                    "correlationId, nameId, returnValue, callchainId);"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (90, 110, 0, {0}, 5, 1, 0, 3),"
                    // Another process has the same correlation.
                    "(290, 310, 0, 99, 6, 1, 0, 4), (290, 310, 0, {0}, 6, 1, 0, NULL),"
                    // A request that failed, and the look at its error.
                    "(400, 410, 0, {0}, 7, 6, 2, 3), (411, 412, 0, {0}, 8, 7, 2, 3);"
                    "CREATE TABLE CUDA_CALLCHAINS (id, symbol, module, unresolved, originalIP, "
                    "stackDepth, PRIMARY KEY (id, stackDepth));"
                    "INSERT INTO CUDA_CALLCHAINS VALUES (3, 3, 2, 0, 0, 1), (3, 1, 2, 0, 0, 0);"
                    "CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, textId);"
                    "INSERT INTO NVTX_EVENTS VALUES (50, 200, 59, NULL, {0}, 4),"
                    "(210, 350, 60, 'load', {0}, NULL), (210, NULL, 59, 'no end', {0}, NULL),"
                    "(210, 220, 34, 'a mark', {0}, NULL);"
                    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
                    "INSERT INTO StringIds VALUES (1, 'cudaMalloc_v3020'), (2, 'libapp.so'), "
                    "(3, 'load_weights'), (4, 'forward'), (6, 'cudaMalloc_v3020'), "
                    "(7, 'cudaGetLastError_v3020');"
                    "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs, utcTime, localTime);"
                    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES "
                    "(1764000000000000000, '', '');"
                    "CREATE TABLE TARGET_INFO_GPU (id, name, totalMemory);"
                    "INSERT INTO TARGET_INFO_GPU VALUES (0, 'Other', 1), (1, 'NVIDIA H100', "
                    "85899345920);"
                    "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid);"
                    "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 4711), (0, 0, 1);",
                    thread));
    const Timeline timeline = timeline_of(content);
    CHECK(timeline.start_unix_ns == 1764000000000000050);
    CHECK(timeline.fact("device.0.name") == "NVIDIA H100");
    const auto analysis = analysis_of(content);
    const std::string text = report_text(*analysis, Terminal(1, ColorChoice::kNever));
    INFO(text);
    for (const char* const line :
         {"cudaMalloc failed because memory ran out. The size of the request is unknown.",
          "state      1.48 KiB allocated; free memory unknown",
          "1 request failed for lack of memory. Peak allocated 1.48 KiB",
          "load_weights in libapp.so",
          "forward",
          "load",
          "Not in this Nsight Systems export",
          "device 0 has 80 GiB",
          "1 call failed for lack of memory"}) {
        INFO(line);
        CHECK(text.find(line) != std::string::npos);
    }
    CHECK(text.find("cudaGetLastError") == std::string::npos);
    CHECK(text.find("the first that failed") == std::string::npos);
    const auto json = nlohmann::json::parse(report_json(*analysis));
    REQUIRE(json["ooms"].size() == 1);
    CHECK(json["ooms"][0]["requester"] == "cudaMalloc");
    CHECK(json["ooms"][0]["requested_bytes"].is_null());
    CHECK(json["ooms"][0]["allocated_bytes"] == 1512);
    CHECK(timeline.origins[timeline.events[2].origin].thread == 4712);
}

TEST_CASE("numbers of kinds and operations are those of the file's own tables", "[imports]") {
    const Timeline timeline = timeline_of(
        database(kEvents +
                 "CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER PRIMARY KEY, name, label);"
                 "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (3, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', ''), "
                 "(5, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', '');"
                 "CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id INTEGER PRIMARY KEY, name, label);"
                 "INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES (1, "
                 "'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION', ''), (2, "
                 "'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION', '');" +
                 rows({{.time_ns = 1, .address = 4096, .bytes = 512, .kind = 3, .operation = 1},
                       {.time_ns = 2, .address = 4096, .bytes = 512, .kind = 3, .operation = 2}})));
    CHECK(kinds_of(timeline) == std::vector<std::string>{word(EventKind::kBlockAlloc, 4096, 512),
                                                         word(EventKind::kBlockFree, 4096, 0)});
}

TEST_CASE("columns that an older Nsight Systems did not write are not needed", "[imports]") {
    const Timeline timeline = timeline_of(
        database("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (bytes, start, memKind, address, "
                 "memoryOperationType);"
                 "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (512, 1, 2, 4096, 0);"));
    CHECK(kinds_of(timeline) == std::vector<std::string>{word(EventKind::kBlockAlloc, 4096, 512)});
}

TEST_CASE("of several processes the one with most memory events is shown", "[imports]") {
    const std::int64_t other = std::int64_t{12} << 24;
    const Timeline timeline = timeline_of(
        database(kEvents + rows({{.time_ns = 1, .address = 512, .bytes = 512, .process = other},
                                 {.time_ns = 2, .address = 4096, .bytes = 512},
                                 {.time_ns = 3, .address = 8192, .bytes = 512}})));
    CHECK(timeline.events.size() == 2);
    CHECK(timeline.damage.notes ==
          std::vector<std::string>{"1 memory event of other processes (pid 12) is left out"});
}

TEST_CASE("numbers that many events and calls share take no quadratic time", "[imports]") {
    const Timeline timeline = timeline_of(database(
        kEvents +
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, globalTid INTEGER, correlationId "
        "INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, contextId, address, "
        "pc, bytes, memKind, memoryOperationType, correlationId) SELECT i, " +
        std::to_string(kProcess) +
        ", 0, 1, i * 4096, 0, 512, 2, 0, 1 FROM n;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i, " +
        std::to_string(kProcess + 9) + ", 1, 0, 0, 0 FROM n;"));
    REQUIRE(timeline.events.size() == 100'000);
    CHECK(timeline.origins[timeline.events[99'999].origin].thread == 9);
}

TEST_CASE("a GPU that the database lists many times is described once", "[imports]") {
    const Timeline timeline = timeline_of(
        database(kEvents + rows({{.time_ns = 1, .address = 4096, .bytes = 512}}) +
                 "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER);"
                 "INSERT INTO TARGET_INFO_GPU VALUES (0, 'H100', 85899345920), (0, 'other', 5);"));
    CHECK(timeline.fact("device.0.name") == "H100");
    for (const auto& [key, value] : timeline.facts) {
        CHECK(value.find("device 0 has 5 B") == std::string::npos);
    }
}

TEST_CASE("rows that cannot be read are left out and counted", "[imports]") {
    const Timeline timeline = timeline_of(database(
        kEvents +
        rows({{.time_ns = 1, .address = 4096, .bytes = 512},
              {.time_ns = -1, .address = 4096, .bytes = 512},
              {.time_ns = 1, .address = 0, .bytes = 512},
              {.time_ns = 1, .address = 512, .bytes = -5},
              {.time_ns = 1, .address = 512, .bytes = 512, .operation = 9},
              {.time_ns = 1, .address = 512, .bytes = 512, .device = 99},
              {.time_ns = 1, .address = 512, .bytes = 512, .kind = 0}}) +
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, contextId, "
        "address, pc, bytes, memKind, memoryOperationType) VALUES ('now', 'x', x'00', 1, 1.5, 0, "
        "'much', 2, 0);"));
    CHECK(timeline.events.size() == 1);
    CHECK(timeline.damage.notes ==
          std::vector<std::string>{"6 memory events that cannot be read are left out",
                                   "1 memory event of unknown or pageable memory is left out"});
}

TEST_CASE("an Nsight Systems export without memory events says how to record them", "[imports]") {
    const std::string advice =
        ". Record with `nsys profile --cuda-memory-usage=true` and export with `nsys export "
        "--type sqlite`.";
    CHECK(refusal_of(database("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs)")) ==
          "has no CUDA memory events (table CUDA_GPU_MEMORY_USAGE_EVENTS)" + advice);
    CHECK(refusal_of(database(kEvents)) == "its table of CUDA memory events is empty" + advice);
    CHECK(refusal_of(database("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, bytes)")) ==
          "its table CUDA_GPU_MEMORY_USAGE_EVENTS has no column address" + advice);
    CHECK(refusal_of(database(kEvents + rows({{.time_ns = -1, .address = 1, .bytes = 1}}))) ==
          "none of its CUDA memory events is one that can be read" + advice);
}

TEST_CASE("only ordinary tables of a database are read", "[imports]") {
    const std::string content = GENERATE(
        // A view that never ends.
        std::string("CREATE TABLE t (x); CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS WITH "
                    "RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT "
                    "start, 1 AS bytes FROM n"),
        std::string("CREATE VIRTUAL TABLE CUDA_GPU_MEMORY_USAGE_EVENTS USING fts5(start, bytes)"),
        std::string("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, bytes AS "
                    "(length(zeroblob(1000000))), address, memKind, memoryOperationType)"));
    CHECK(refusal_of(database(content))
              .starts_with("CUDA_GPU_MEMORY_USAGE_EVENTS in it is not an ordinary table."));
}

TEST_CASE("a view in place of another table of an export is refused", "[imports]") {
    CHECK(refusal_of(database(kEvents + rows({{.time_ns = 1, .address = 4096, .bytes = 512}}) +
                              "CREATE VIEW StringIds AS SELECT 1 AS id, 'x' AS value"))
              .starts_with("StringIds in it is not an ordinary table."));
}

TEST_CASE("triggers, indexes and foreign texts of a database do nothing", "[imports]") {
    const std::string content = database(
        kEvents + rows({{.time_ns = 1, .address = 4096, .bytes = 512}}) +
        "CREATE INDEX i ON CUDA_GPU_MEMORY_USAGE_EVENTS (start);"
        "CREATE TRIGGER t AFTER INSERT ON CUDA_GPU_MEMORY_USAGE_EVENTS BEGIN DELETE FROM "
        "CUDA_GPU_MEMORY_USAGE_EVENTS; END;"
        "CREATE TABLE TARGET_INFO_GPU (id, name, totalMemory);"
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'card' || char(27) || '[2J' || CAST(x'ff' AS "
        "TEXT), -1);");
    const Timeline timeline = timeline_of(content);
    CHECK(timeline.events.size() == 1);
    CHECK(timeline.fact("device.0.name") == "card\\u001b[2J?");
}

TEST_CASE("a value longer than 1 MiB is refused", "[imports]") {
    CHECK(refusal_of(database(kEvents + rows({{.time_ns = 1, .address = 4096, .bytes = 512}}) +
                              "CREATE TABLE TARGET_INFO_GPU (id, name);"
                              "INSERT INTO TARGET_INFO_GPU VALUES (0, hex(zeroblob(600000)));"))
              .starts_with("has a value longer than 1 MiB."));
}

TEST_CASE("a cut or damaged database is one line", "[imports]") {
    const std::string whole = database(
        kEvents + rows(std::vector<Row>(2000, {.time_ns = 1, .address = 4096, .bytes = 512})));
    for (const std::size_t size : {std::size_t{100}, whole.size() / 2, whole.size() - 4096}) {
        const auto timeline = read_text(whole.substr(0, size));
        INFO(size);
        REQUIRE_FALSE(timeline.ok());
        CHECK(timeline.error().code == ErrorCode::kInput);
        CHECK(timeline.error().message.find('\n') == std::string::npos);
    }
    // Every page refers to itself.
    for (std::size_t page = 1; page < 5; ++page) {
        std::string damaged = whole;
        for (std::size_t i = 0; i < 64; ++i) {
            damaged[page * 4096 + i] = static_cast<char>(i == 0 ? 5 : i % 4 == 3 ? page + 1 : 0);
        }
        const auto timeline = read_text(damaged);
        CHECK((timeline.ok() || timeline.error().message.find('\n') == std::string::npos));
    }
}

TEST_CASE("pages that are referred to many times are noticed", "[imports]") {
    std::string content = database(
        kEvents + rows(std::vector<Row>(2000, {.time_ns = 1, .address = 4096, .bytes = 512})));
    // The root of the table is an interior page: all its cells refer to the first child.
    const std::size_t root = 4096;
    REQUIRE(content[root] == 5);
    const auto cells = static_cast<unsigned char>(content[root + 4]);
    const auto at = [&content](std::size_t offset) {
        return static_cast<std::size_t>(static_cast<unsigned char>(content[offset]));
    };
    const std::size_t first = root + at(root + 12) * 256 + at(root + 13);
    for (std::size_t i = 0; i < cells; ++i) {
        const std::size_t cell = root + at(root + 12 + 2 * i) * 256 + at(root + 13 + 2 * i);
        content.replace(cell, 4, content.substr(first, 4));
    }
    CHECK(refusal_of(content).starts_with("its table CUDA_GPU_MEMORY_USAGE_EVENTS is damaged"));
}

TEST_CASE("other SQLite databases are no exports of Nsight Systems", "[imports]") {
    CHECK(refusal_of(database("CREATE TABLE events (x)")).find("an SQLite database") !=
          std::string::npos);
}

TEST_CASE("a report of Nsight Systems itself is refused with the command that exports it",
          "[imports]") {
    const auto timeline = read_text("some bytes of a report", "report1.nsys-rep");
    REQUIRE_FALSE(timeline.ok());
    CHECK(timeline.error().message.ends_with(
        "is not a trace but looks like a report of Nsight Systems; export it with `nsys export "
        "--type sqlite` and name the .sqlite file."));
}

TEST_CASE("the report of an Nsight Systems export knows the driver's memory", "[imports]") {
    const std::string content = database(
        kEvents + rows({{.time_ns = 100, .address = 4194304, .bytes = 3000000},
                        {.time_ns = 200, .address = 8388608, .bytes = 2000000},
                        {.time_ns = 300, .address = 4194304, .bytes = 3000000, .operation = 1}}));
    AnalyzeOptions options;
    add_report_replays(&options);
    const auto analysis = analysis_of(content, options);
    REQUIRE(analysis->devices.size() == 1);
    CHECK(analysis->devices[0].recorded.peak_allocated == 5000000);
    const std::string text = report_json(*analysis);
    testing::keep_report("import_nsight_systems", text);
    const auto json = nlohmann::json::parse(text);
    CHECK(json["source"]["import"]["format"] == "Nsight Systems export");
    CHECK(json["devices"][0]["peak"]["allocated"] == 5000000);
    CHECK(json["devices"][0]["peak"]["requested"] == 5000000);
    CHECK(json["devices"][0]["peak"]["reserved"].is_null());
    CHECK(json["devices"][0]["waste_at_peak"]["inactive_split"].is_null());
    CHECK(json["devices"][0]["ooms"].is_null());
    CHECK(json["whatif"][0]["class"] == "estimate");
    CHECK(page_content(*analysis).devices.size() == 1);
}
