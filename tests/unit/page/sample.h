// Small pages to write in tests.
#pragma once

#include "analyzer/report/page/page_data.h"
#include "analyzer/support/units.h"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace fragtrace::page_test {

inline nlohmann::json header_of(const std::string& html) {
    const std::string mark = "id=\"ft-header\">";
    const std::size_t begin = html.find(mark) + mark.size();
    return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

// What the page says that it leaves out of a device.
inline std::string notes_of(const nlohmann::json& device) {
    std::string notes;
    for (const nlohmann::json& note : device["notes"])
        notes += note.get<std::string>() + "\n";
    return notes;
}

inline analyzer::PageCard card_naming(std::vector<std::uint32_t> blocks) {
    analyzer::PageCulprit culprit;
    culprit.blocks = std::move(blocks);
    analyzer::PageCard card;
    card.culprits = {culprit};
    return card;
}

inline void add_block(analyzer::PageDevice& device,
                      std::uint64_t start_ns,
                      std::uint64_t freed_ns,
                      std::uint64_t end_ns,
                      std::uint64_t address,
                      std::uint64_t size_bytes) {
    analyzer::BlockLives& blocks = device.blocks;
    blocks.start_ns.push_back(start_ns);
    blocks.freed_ns.push_back(freed_ns);
    blocks.end_ns.push_back(end_ns);
    blocks.address.push_back(address);
    blocks.size_bytes.push_back(size_bytes);
    blocks.requested_bytes.push_back(size_bytes / 2);
    blocks.stack.push_back(0);
    blocks.stream.push_back(0);
}

// One device with two segments and a gap between them. The first segment has a block that lives in
// [100, 300).
inline analyzer::PageData small_page() {
    using analyzer::kMiB;
    analyzer::PageData data;
    data.title = "small";
    data.processes = {{data.title, "", "", {}}};
    data.frames.resize(1);
    data.stacks.resize(1);
    analyzer::PageDevice device;
    device.end_ns = 1000;
    device.segments = {
        {.start_ns = 0, .address = 0x7000'0000'0000, .size_bytes = 20 * kMiB},
        {.start_ns = 0, .end_ns = 500, .address = 0x7100'0000'0000, .size_bytes = 2 * kMiB}};
    add_block(device, 100, 300, 300, 0x7000'0000'0000 + 5 * kMiB, 10 * kMiB);
    data.devices.push_back(std::move(device));
    return data;
}

}  // namespace fragtrace::page_test
