// A trace made of events from the input, in two ways: arbitrary events, or a program on the
// simulated pool, whose trace a recorder could have written.
#include <fragtrace/sizes.h>

#include "tests/fuzz/harness.h"
#include "tests/support/simulated_program.h"

#include <array>

namespace {

using namespace fragtrace;

constexpr std::uint64_t kBase = 0x7f0000000000;
constexpr std::array<std::uint64_t, 4> kStreams = {0, 0x70, 0x71, kStreamUnknown};

// One byte selects a value that matters: sizes, addresses, handles, small numbers, ends of ranges.
std::uint64_t value(std::uint8_t code) {
    constexpr std::array<std::uint64_t, 10> rare = {
        0, 1, 2, 3, 4, 5, kUnknown64, kDeferredEvent, kDeferredEvent + 1, kUnknown64 - 4095};
    if (code < 128) {
        return (code % 16 + std::uint64_t{1}) << (9 + code / 16 * 3);
    }
    const std::size_t at = code - std::size_t{128};
    return at < rare.size() ? rare[at] : kBase + at * 2 * kMiB;
}

EventRecord next_event(fuzz::Input* input, const testing::TraceWriter& trace) {
    EventRecord event = trace.next();
    event.kind = static_cast<EventKind>(input->byte() % 68);
    event.flags = input->byte() % 8;
    event.address = value(input->byte());
    event.address += 512 * std::uint64_t{input->byte()};
    event.size = value(input->byte());
    event.extra = value(input->byte());
    const std::uint8_t place = input->byte();
    event.stream = kStreams[place % 4];
    event.pool = place / 4 % 4;
    event.device = place / 16 % 8 == 7 ? kDeviceUnknown : place / 16 % 8 / 6;
    const std::uint8_t caller = input->byte();
    event.python_stack = caller % 8;
    event.native_stack = caller / 8 % 4;
    event.thread = caller / 32 % 4;
    event.duration_ns = caller / 128;
    return event;
}

std::string any_events(fuzz::Input* input) {
    testing::TraceWriter trace;
    const std::uint8_t facts = input->byte();
    trace.fact("device.0.total_bytes", facts % 2 != 0 ? "17179869184" : "67108864");
    trace.fact("device.1.total_bytes", "17179869184");
    trace.fact("torch_version", facts / 2 % 2 != 0 ? "2.15.0" : "2.1.0");
    trace.fact("torch.captures", facts / 4 % 2 != 0 ? "recorded" : "");
    trace.fact("allocator_conf", facts / 8 % 2 != 0 ? "expandable_segments:True" : "");
    trace.fact("pool.1", "pytorch 1,0");
    trace.fact("pool.2", "pytorch 0,1");
    trace.fact("pool.3", "cuda 3");
    trace.fact("text.1", "step");
    trace.fact("text.2", "expandable_segments:True");
    trace.fact("text.3", "garbage_collection_threshold:0.5,max_split_size_mb:20");
    for (std::uint32_t node = 0; node < 7; ++node) {
        trace.python_node(node / 2, trace.code("f", "train.py", 1), node);
    }
    const std::uint8_t end = input->byte();
    while (!input->empty()) {
        EventRecord event = next_event(input, trace);
        trace.event(event);
    }
    if (end % 8 != 0) {
        trace.end(static_cast<EndReason>(end % 8));
    }
    return fuzz::save("trace", trace.bytes());
}

std::string program(fuzz::Input* input) {
    constexpr std::array settings = {"",
                                     "expandable_segments:True",
                                     "max_split_size_mb:20",
                                     "garbage_collection_threshold:0.5",
                                     "roundup_power2_divisions:4",
                                     "per_process_memory_fraction:0.5"};
    const std::uint8_t setup = input->byte();
    testing::SimulatedProgram run((1 + setup / 8 % 8) * 64 * kMiB,
                                  (setup / 64) * 10 * kMiB,
                                  settings[setup % 8 % settings.size()]);
    for (const std::uint32_t pool : {1, 2}) {
        run.make_pool(pool);
    }
    std::vector<std::uint32_t> blocks;
    while (!input->empty()) {
        const std::uint8_t what = input->byte();
        const std::uint8_t which = input->byte();
        run.at("step", which % 8 + 1);
        switch (what % 8) {
            case 0:
                run.begin_phase(which % 2 != 0 ? "step" : "forward");
                break;
            case 1:
                run.end_phase();
                break;
            case 2:
                run.refuse_library(value(which));
                break;
            case 3:
            case 4:
                if (!blocks.empty()) {
                    const auto at = blocks.begin() + which % static_cast<int>(blocks.size());
                    run.free(*at, what < 32 ? 0x70 : 0);
                    blocks.erase(at);
                }
                break;
            default:
                blocks.push_back(run.alloc((which % 16 + std::uint64_t{1}) << (8 + which / 16),
                                           what / 8 % 8 == 0 ? 0x70 : 0,
                                           what / 64 % 3));
        }
    }
    std::string path = fuzz::save("trace", "");
    run.save(path);
    return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint8_t choice = input.byte();
    fuzz::run_on_recording(choice, choice < 128 ? any_events(&input) : program(&input));
    return 0;
}
