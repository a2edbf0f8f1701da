#include "analyzer/support/units.h"
#include "synthetic.h"

#include <fmt/format.h>
#include <random>

namespace fragtrace::page_test {

using namespace analyzer;

PageData crowded_page(std::size_t blocks) {
    PageData data;
    data.title = "crowd.py";
    data.processes = {{data.title, "", "", {}}};
    data.frames.push_back({"", "", 0, false});
    data.stacks.push_back({});
    constexpr std::uint32_t kStacks = 200;
    for (std::uint32_t i = 1; i <= kStacks; ++i) {
        data.frames.push_back({fmt::format("layer{}", i), "/demo/crowd.py", i, true});
        data.frames.back().label = fmt::format("crowd.py:{} layer{}", i, i);
        data.stacks.push_back({i / 4, i});
    }
    PageDevice device;
    device.name = "crowded";
    device.streams = {"default"};
    std::mt19937_64 random(5);
    const std::uint64_t segment_bytes = 20 * kMiB;
    std::uint64_t address = 0x7f0000000000;
    std::uint64_t left = 0;
    std::uint64_t now_ns = 0;
    const std::uint64_t all_there_ns = blocks * 1000;
    BlockLives& rows = device.blocks;
    for (std::size_t i = 0; i < blocks; ++i) {
        const std::uint64_t size = (1 + random() % 120) * 512;
        now_ns += 1000;
        if (left < size) {
            address += left;
            left = segment_bytes;
            device.segments.push_back(
                {.start_ns = now_ns, .address = address, .size_bytes = segment_bytes});
        }
        // Every third block is freed once all of them are allocated.
        const std::uint64_t freed =
            i % 3 == 0 ? all_there_ns + 1'000'000 + random() % all_there_ns : kNeverNs;
        rows.start_ns.push_back(now_ns);
        rows.freed_ns.push_back(freed);
        rows.end_ns.push_back(freed);
        rows.address.push_back(address);
        rows.size_bytes.push_back(size);
        rows.requested_bytes.push_back(size);
        rows.stack.push_back(1 + static_cast<std::uint32_t>(random() % kStacks));
        rows.stream.push_back(0);
        address += size;
        left -= size;
    }
    device.end_ns = 2 * all_there_ns + 2'000'000;
    data.devices.push_back(std::move(device));
    return data;
}

}  // namespace fragtrace::page_test
