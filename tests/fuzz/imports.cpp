// Recordings of other tools: bytes as they are, bytes inside the frame of a format, or a recording
// of each format that is made from the input.
#include "analyzer/support/protobuf.h"
#include "tests/fuzz/harness.h"

#include <array>
#include <fmt/format.h>
#include <sqlite3.h>

namespace {

using namespace fragtrace;

constexpr std::array kActions = {"allocate", "free", "allocate failure"};
constexpr std::array kNames = {
    "[memory]", "[OutOfMemory]", "ProfilerStep#1", "aten::empty", "train.py(12): step"};
constexpr std::array kCategories = {"user_annotation", "cpu_op", "python_function"};

// Few addresses, so that blocks are freed and overlap.
std::uint64_t address(fuzz::Input* input) {
    return 0x7f0000000000 + input->byte() * std::uint64_t{512};
}

std::uint64_t size(fuzz::Input* input) {
    const std::uint8_t code = input->byte();
    return code == 255   ? ~std::uint64_t{0}
           : code == 254 ? 0
                         : (code % 16 + std::uint64_t{1}) << (code / 8);
}

std::string rmm_log(fuzz::Input* input) {
    std::string log = "Thread,Time,Action,Pointer,Size,Stream\n";
    while (!input->empty()) {
        const std::uint8_t what = input->byte();
        log += fmt::format("{},{:02}:{:02}:00.{:06},{},{:#x},{},{:#x}\n",
                           what / 64,
                           what % 25,
                           input->byte() % 60,
                           input->byte(),
                           kActions[what % kActions.size()],
                           address(input),
                           size(input),
                           what / 128);
    }
    return log;
}

std::string profile(fuzz::Input* input) {
    std::string events;
    while (!input->empty()) {
        const std::uint8_t what = input->byte();
        const char* const name = kNames[what % kNames.size()];
        events += fmt::format(R"({}{{"ph":"{}","cat":"{}","name":"{}","pid":1,"tid":{},"ts":{},)"
                              R"("dur":{},"args":{{"Addr":{},"Bytes":{}{},"Device Type":{},)"
                              R"("Device Id":{},"Total Allocated":{},"Total Reserved":{}}}}})",
                              events.empty() ? "" : ",",
                              what % kNames.size() < 2 ? "i" : "X",
                              kCategories[what % kCategories.size()],
                              name,
                              what / 128,
                              input->byte(),
                              input->byte(),
                              address(input),
                              what / 32 % 2 == 0 ? "" : "-",
                              size(input),
                              what / 16 % 4 == 3 ? 0 : 1,
                              what / 64 % 2,
                              size(input),
                              size(input));
    }
    return fmt::format(R"({{"deviceProperties":[{{"id":0,"name":"card","totalGlobalMem":1024}}],)"
                       R"("traceEvents":[{}]}})",
                       events);
}

// Numbers of names in xla_profile(): events from 1, stats from 1.
constexpr std::array kXlaEvents = {"MemoryAllocation", "MemoryDeallocation", "train", "MatMul"};
constexpr std::array kXlaStats = {"allocator_name",
                                  "addr",
                                  "requested_bytes",
                                  "allocation_bytes",
                                  "bytes_allocated",
                                  "bytes_available",
                                  "tf_op",
                                  "_r",
                                  "GPU_0_bfc",
                                  "cpu"};

template <std::size_t kCount>
void add_names(analyzer::ProtoMessage* plane,
               std::uint32_t field,
               const std::array<const char*, kCount>& names) {
    for (std::size_t i = 0; i < kCount; ++i) {
        analyzer::ProtoMessage name;
        name.number(1, i + 1).text(2, names[i]);
        plane->message(field, analyzer::ProtoMessage().number(1, i + 1).message(2, name));
    }
}

// The lines of the plane are bytes of the input, or made from it.
std::string xla_profile(fuzz::Input* input, bool raw) {
    analyzer::ProtoMessage line;
    while (!raw && !input->empty()) {
        const std::uint8_t what = input->byte();
        analyzer::ProtoMessage event;
        event.number(1, what % kXlaEvents.size() + 1).number(2, input->byte() * std::uint64_t{999});
        event.number(3, what / 4 * std::uint64_t{1000});
        const auto add = [&event](std::uint64_t stat, std::uint32_t field, std::uint64_t value) {
            event.message(4, analyzer::ProtoMessage().number(1, stat).number(field, value));
        };
        add(1, 7, what / 128 == 0 ? 9 : 10);
        add(2, 4, address(input));
        add(3, 3, size(input));
        add(4, 4, size(input));
        add(5, 4, size(input));
        add(6, 4, what);
        add(what % 2 == 0 ? 7 : 8, 7, what % 11);
        line.message(4, event);
    }
    analyzer::ProtoMessage plane;
    plane.number(1, 1).text(2, "/host:CPU").text(3, raw ? input->rest() : line.bytes());
    add_names(&plane, 4, kXlaEvents);
    add_names(&plane, 5, kXlaStats);
    return analyzer::ProtoMessage().message(1, plane).bytes();
}

// With `damaged` the input ends with changes of single bytes of the database.
std::string nsight_export(fuzz::Input* input, bool damaged) {
    std::string rows;
    std::size_t left = damaged ? 8 : ~std::size_t{0};
    for (; left != 0 && !input->empty(); --left) {
        const std::uint8_t what = input->byte();
        rows += fmt::format(
            "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES ({}, {}, {}, {}, {}, {}, {}, {}, {});"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, 1, {}, {});"
            "INSERT INTO CUDA_CALLCHAINS VALUES ({}, {}, 1, 2);"
            "INSERT INTO NVTX_EVENTS VALUES ({}, {}, {}, 16777216, 'text', {});",
            input->byte(),
            16777216,
            what / 64 % 2,
            address(input),
            static_cast<std::int64_t>(size(input)),
            what % 8,
            what / 8 % 2,
            what / 16 % 4 == 0 ? "NULL" : "7",
            what,
            what,
            input->byte(),
            16777216 + what / 128,
            what % 5 == 0 ? 2 : 0,
            what % 4,
            what % 4,
            what % 3,
            what,
            what + input->byte(),
            what % 2 == 0 ? 59 : 60,
            what % 7 == 0 ? "NULL" : "1");
    }
    sqlite3* database = nullptr;
    sqlite3_open(":memory:", &database);
    sqlite3_exec(
        database,
        ("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, address, bytes, "
         "memKind, memoryOperationType, localMemoryPoolAddress, correlationId);"
         "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (correlationId, start, globalTid, nameId, "
         "returnValue, callchainId);"
         "CREATE TABLE CUDA_CALLCHAINS (id, stackDepth, symbol, module);"
         "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text, textId);"
         "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value);"
         "INSERT INTO StringIds VALUES (1, 'cudaMalloc_v3020'), (2, 'libapp.so');"
         "CREATE TABLE TARGET_INFO_GPU (id, name, totalMemory);"
         "INSERT INTO TARGET_INFO_GPU VALUES (0, 'card', 1024);" +
         rows)
            .c_str(),
        nullptr,
        nullptr,
        nullptr);
    sqlite3_int64 size_bytes = 0;
    unsigned char* const bytes = sqlite3_serialize(database, "main", &size_bytes, 0);
    std::string content(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size_bytes));
    sqlite3_free(bytes);
    sqlite3_close(database);
    while (damaged && !input->empty()) {
        const std::uint64_t place = input->number(3);
        content[place % content.size()] = static_cast<char>(input->byte());
    }
    return content;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    fuzz::Input input(data, size_bytes);
    const std::uint8_t choice = input.byte();
    std::string content;
    switch (choice / 32) {
        case 0:
            content = input.rest();
            break;
        case 1:
        case 3:
            content = xla_profile(&input, choice / 32 == 1);
            break;
        case 2:
            content = "Thread,Time,Action,Pointer,Size,Stream\n" + std::string(input.rest());
            break;
        case 4:
            content = rmm_log(&input);
            break;
        case 5:
        case 7:
            content = nsight_export(&input, choice / 32 == 7);
            break;
        default:
            content = profile(&input);
            break;
    }
    fuzz::run_on_recording(choice, fuzz::save("import", content));
    return 0;
}
