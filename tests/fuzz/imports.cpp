// Recordings of other tools: bytes as they are, bytes after the header of an RMM log, or lines of
// an RMM log and events of a PyTorch profile that are made from the input.
#include "tests/fuzz/harness.h"

#include <array>
#include <fmt/format.h>

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    fuzz::Input input(data, size_bytes);
    const std::uint8_t choice = input.byte();
    std::string content;
    switch (choice / 64) {
        case 0:
            content = input.rest();
            break;
        case 1:
            content = "Thread,Time,Action,Pointer,Size,Stream\n" + std::string(input.rest());
            break;
        case 2:
            content = rmm_log(&input);
            break;
        default:
            content = profile(&input);
            break;
    }
    fuzz::run_on_recording(choice, fuzz::save("import", content));
    return 0;
}
