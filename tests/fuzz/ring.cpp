// The ring of a killed process's trace, byte by byte. It always belongs to the trace.
#include "tests/fuzz/harness.h"
#include "tests/support/trace_writer.h"

#include <cstring>

namespace {

using namespace fragtrace;

constexpr std::uint64_t kBase = 0x7f0000000000;

testing::TraceWriter killed_program(bool continued) {
    testing::TraceWriter trace;
    trace.fact("device.0.total_bytes", "17179869184");
    trace.fact("pool.1", "pytorch 1,0");
    trace.fact("text.1", "step");
    trace.set_python_stack(trace.python_node(0, trace.code("step", "train.py", 3), 4));
    trace.device_alloc(kBase, 20 << 20, true);
    trace.block_alloc(kBase, 5 << 20, 5 << 20);
    trace.block_alloc(kBase + (5 << 20), 512, 512);
    trace.block_free(kBase, 5 << 20, true);
    if (continued) {
        trace.end(EndReason::kContinued);
    }
    return trace;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint8_t choice = input.byte();
    testing::TraceWriter trace = killed_program(choice >= 128);
    std::string bytes(input.rest());
    RingHeader ring = {};
    if (bytes.size() >= sizeof ring) {
        std::memcpy(&ring, bytes.data(), sizeof ring);
        std::memcpy(ring.magic, kRingMagic, sizeof ring.magic);
        std::memcpy(ring.session, trace.header.session, sizeof ring.session);
        std::memcpy(bytes.data(), &ring, sizeof ring);
    }
    const std::string path = fuzz::save("ring", bytes);
    std::strncpy(trace.header.ring_path, path.c_str(), sizeof trace.header.ring_path - 1);
    fuzz::run_on_recording(choice, fuzz::save("trace", trace.bytes()));
    return 0;
}
