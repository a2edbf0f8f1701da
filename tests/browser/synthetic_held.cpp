#include "synthetic_held.h"

#include "analyzer/analysis/verdict/culprits.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <random>

namespace fragtrace::page_test {

using namespace analyzer;

namespace {

// Adjacent mapped ranges are one segment, whatever calls mapped them.
std::vector<HeapSegment> segments_before(const PageDevice& device, std::uint64_t before_ns) {
    std::vector<HeapSegment> found;
    for (const SegmentLife& segment : device.segments) {
        if (segment.start_ns < before_ns && segment.end_ns >= before_ns) {
            found.push_back({.address = segment.address,
                             .size_bytes = segment.size_bytes,
                             .expandable = segment.page_bytes > 0,
                             .page_bytes = segment.page_bytes});
        }
    }
    std::sort(found.begin(), found.end(), [](const HeapSegment& a, const HeapSegment& b) {
        return a.address < b.address;
    });
    std::vector<HeapSegment> merged;
    for (const HeapSegment& segment : found) {
        if (!merged.empty() && segment.expandable && merged.back().expandable &&
            merged.back().address + merged.back().size_bytes == segment.address) {
            merged.back().size_bytes += segment.size_bytes;
        } else {
            merged.push_back(segment);
        }
    }
    return merged;
}

// `allocated_by` is the block's row.
HeapSnapshot heap_before(const PageDevice& device, std::uint64_t before_ns) {
    const BlockLives& blocks = device.blocks;
    std::map<std::uint64_t, std::uint32_t> rows;  // by address
    for (std::uint32_t i = 0; i < blocks.size(); ++i) {
        if (blocks.start_ns[i] < before_ns && blocks.end_ns[i] >= before_ns)
            rows[blocks.address[i]] = i;
    }
    HeapSnapshot heap;
    heap.segments = segments_before(device, before_ns);
    for (HeapSegment& segment : heap.segments) {
        segment.first_block = static_cast<std::uint32_t>(heap.blocks.size());
        const std::uint64_t end = segment.address + segment.size_bytes;
        std::uint64_t at = segment.address;
        const auto free_up_to = [&](std::uint64_t address) {
            if (address > at) heap.blocks.push_back({.address = at, .size_bytes = address - at});
        };
        for (auto row = rows.lower_bound(at); row != rows.end() && row->first < end; ++row) {
            const std::uint32_t i = row->second;
            free_up_to(row->first);
            heap.blocks.push_back({.address = row->first,
                                   .size_bytes = blocks.size_bytes[i],
                                   .allocated_by = i,
                                   .state = blocks.freed_ns[i] < before_ns ? BlockState::kPending
                                                                           : BlockState::kLive});
            at = row->first + blocks.size_bytes[i];
        }
        free_up_to(end);
        segment.block_count = static_cast<std::uint32_t>(heap.blocks.size()) - segment.first_block;
    }
    return heap;
}

}  // namespace

void add_culprits(const PageDevice& device,
                  std::uint64_t before_ns,
                  const std::vector<std::pair<std::uint32_t, std::string>>& names,
                  PageCard* card) {
    const HeapSnapshot heap = heap_before(device, before_ns);
    const std::vector<std::uint64_t> held = held_open_bytes(heap);
    std::map<std::string, PageCulprit> rows;
    for (std::size_t i = 0; i < heap.blocks.size(); ++i) {
        if (held[i] == 0) continue;
        const auto row = static_cast<std::uint32_t>(heap.blocks[i].allocated_by);
        const std::uint32_t stack = device.blocks.stack[row];
        const auto name = std::find_if(names.begin(), names.end(), [stack](const auto& entry) {
            return entry.first == stack;
        });
        if (name == names.end()) continue;
        PageCulprit& culprit = rows[name->second];
        culprit.stack = stack;
        culprit.held.label = name->second;
        culprit.held_open_bytes += held[i];
        culprit.held.add(heap.blocks[i].size_bytes, 1);
        culprit.age = "since the first step";
        // Blocks with a quarter or more of free memory around them are marked.
        if (held[i] * 3 >= heap.blocks[i].size_bytes) culprit.blocks.push_back(row);
    }
    for (auto& [name, culprit] : rows)
        card->culprits.push_back(std::move(culprit));
    std::stable_sort(card->culprits.begin(),
                     card->culprits.end(),
                     [](const PageCulprit& a, const PageCulprit& b) {
                         return a.held_open_bytes > b.held_open_bytes;
                     });
}

PageData shares_page() {
    PageData data;
    data.title = "shares.py";
    data.processes = {{data.title, "", "", {}}};
    data.frames.push_back({"", "", 0, false});
    data.stacks.push_back({});
    std::vector<std::pair<std::uint32_t, std::string>> names;
    for (std::uint32_t line = 1; line <= 5; ++line) {
        data.frames.push_back({fmt::format("line{}", line), "/demo/shares.py", line, true});
        data.frames.back().label = fmt::format("shares.py:{} line{}", line, line);
        data.stacks.push_back({0, line});
        names.emplace_back(line, fmt::format("shares.py:{0} line{0}", line));
    }
    // The same line in a different stack.
    data.frames.push_back({"at::native::clone", "libtorch_cuda.so", 0, false});
    data.frames.back().label = "at::native::clone in libtorch_cuda.so";
    data.frames.back().library = "torch";
    data.stacks.push_back({.parent = 5, .frame = 6, .telling = 1});
    names.emplace_back(6, names.back().second);

    PageDevice device;
    device.name = "shares";
    device.streams = {"default", "0x7"};
    std::mt19937_64 random(17);
    constexpr std::uint64_t kBase = 0x7f0000000000;
    constexpr std::array<std::uint64_t, 4> kSegments = {2 * kMiB, 20 * kMiB, 34 * kMiB, 2 * kMiB};
    // Adjacent ranges in which blocks may lie: segments, and expandable ones with pages of 2 and of
    // 20 MiB, mapped by several calls.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    for (std::uint64_t i = 0; i < kSegments.size(); ++i) {
        ranges.emplace_back(kBase + i * kGiB, kSegments[i]);
        device.segments.push_back(
            {.start_ns = 1, .address = ranges.back().first, .size_bytes = kSegments[i]});
    }
    for (const std::uint64_t page : {2 * kMiB, 20 * kMiB}) {
        const std::uint64_t begin = kBase + 1024 * kGiB + page * kKiB;
        std::uint64_t at = begin;
        for (const std::uint64_t pages : {1, 3, 2}) {
            device.segments.push_back({.start_ns = 1 + pages,
                                       .address = at,
                                       .size_bytes = pages * page,
                                       .page_bytes = page});
            at += pages * page;
        }
        ranges.emplace_back(begin, at - begin);
    }
    device.segments.push_back(
        {.start_ns = 2, .address = kBase + 2048 * kGiB, .size_bytes = 20 * kMiB, .pool = 1});
    device.pools = {{}, {"private pool 3", {}}};
    BlockLives& blocks = device.blocks;
    const auto add = [&](std::uint64_t start,
                         std::uint64_t freed,
                         std::uint64_t end,
                         std::uint64_t address,
                         std::uint64_t size) {
        blocks.start_ns.push_back(start);
        blocks.freed_ns.push_back(freed);
        blocks.end_ns.push_back(end);
        blocks.address.push_back(address);
        blocks.size_bytes.push_back(size);
        blocks.requested_bytes.push_back(size);
        blocks.stack.push_back(1 + static_cast<std::uint32_t>(random() % 6));
        blocks.stream.push_back(0);
    };
    for (std::uint64_t moment = 0; moment < 8; ++moment) {
        const std::uint64_t begin_ns = 1'000'000 * moment + 1000;
        const std::uint64_t card_ns = begin_ns + 500'000;
        const std::uint64_t end_ns = begin_ns + 900'000;
        std::uint64_t now_ns = begin_ns;
        for (const auto& [begin, size_bytes] : ranges) {
            // Small and large blocks with holes between them, up to several pages long.
            for (std::uint64_t at = begin; at < begin + size_bytes;) {
                at += random() % 4 == 0 ? 0 : 512 * (random() % (size_bytes / 2048));
                const std::uint64_t longest =
                    random() % 3 == 0 ? size_bytes / 1024 : 1 + size_bytes / 16384;
                const std::uint64_t size = 512 * (1 + random() % longest);
                if (at + size > begin + size_bytes) break;
                const bool pending = random() % 5 == 0;
                add(++now_ns, pending ? card_ns - 1000 : end_ns, end_ns, at, size);
                at += size;
            }
        }
        PageCard card;
        card.kind = moment % 2 == 0 ? PageCardKind::kOom : PageCardKind::kRetry;
        card.question = "Which allocations block free memory?";
        card.time_ns = card_ns;
        card.heading = fmt::format("moment {}", moment);
        add_culprits(device, card_ns, names, &card);
        device.cards.push_back(std::move(card));
        if (moment % 2 == 1) {  // the block of the retry must not count
            device.segments.push_back({.start_ns = card_ns - 10,
                                       .end_ns = end_ns + 10,
                                       .address = kBase + 3072 * kGiB,
                                       .size_bytes = 20 * kMiB});
            add(card_ns, end_ns, end_ns, kBase + 3072 * kGiB, 7 * kMiB);
        }
    }
    device.end_ns = 9'000'000;
    data.devices.push_back(std::move(device));
    return data;
}

}  // namespace fragtrace::page_test
