#include "synthetic_screens.h"

#include <fmt/format.h>
#include <utility>

namespace fragtrace::page_test {

using namespace analyzer;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kBase = 0x7f4400000000;
constexpr std::uint64_t kEnd = 1'000'000;

PageDevice device_with_a_block(std::uint32_t index) {
    PageDevice device;
    device.name = fmt::format("situation {}", index);
    device.index = index;
    device.capacity_bytes = 1024 * kMiB;
    device.end_ns = kEnd;
    device.streams = {"default"};
    device.segments = {{.start_ns = 1000, .address = kBase, .size_bytes = 40 * kMiB}};
    BlockLives& blocks = device.blocks;
    blocks.start_ns = {2000};
    blocks.freed_ns = {kNeverNs};
    blocks.end_ns = {kNeverNs};
    blocks.address = {kBase};
    blocks.size_bytes = {30 * kMiB};
    blocks.requested_bytes = {30 * kMiB};
    blocks.stack = {1};
    blocks.stream = {0};
    return device;
}

PageCard card_of(PageScreen screen) {
    PageCard card;
    card.screen = screen;
    card.question = fmt::format("Question {} <b>?</b>", static_cast<int>(screen));
    card.time_ns = kEnd / 2;
    card.heading = "A heading";
    card.sentence = "A sentence.";
    card.verdict = "genuine";
    card.bars = {{"requested", "asked", 64 * kMiB}};
    return card;
}

}  // namespace

PageData screens_page() {
    PageData data;
    data.title = "screens";
    data.processes = {{"screens.py", "pid 5", "", {}}};
    data.processes.front().lines = {{"pinned", "at most 64 MiB in 1 allocation"}};
    data.processes.front().phases = {
        {"train <b>", 3, 2'000'000'000, 30 * kMiB, 80 * kMiB, -2 * (1 << 20), 4, 1},
        {"no segments", 1, 5, kMiB}};
    data.frames = {{"", "", 0, false}, {"keep", "/demo/keep.py", 8, true}};
    data.stacks = {{}, {0, 1}};
    const HeldBy held{.label = "keep.py:8 <i>keep</i>", .bytes = 30 * kMiB, .blocks = 1};
    for (std::uint32_t i = 0; i <= static_cast<std::uint32_t>(PageScreen::kState); ++i) {
        const auto screen = static_cast<PageScreen>(i);
        PageDevice device = device_with_a_block(i);
        PageCard card = card_of(screen);
        card.kind = screen == PageScreen::kRetry      ? PageCardKind::kRetry
                    : screen == PageScreen::kNearMiss ? PageCardKind::kNearMiss
                    : screen == PageScreen::kState    ? PageCardKind::kState
                    : screen == PageScreen::kPeak || screen == PageScreen::kGrowth
                        ? PageCardKind::kNoOom
                        : PageCardKind::kOom;
        card.culprits = {{1, held, 10 * kMiB, "oldest 1 ms", "", {0}}};
        card.holders = {{1, held, "parameters", 10 * static_cast<std::int64_t>(kMiB)},
                        {1, held, "", std::nullopt}};
        card.since = "step 4";
        card.in_use_bytes = 37 * kMiB;
        card.categories = {{"parameters", 30 * kMiB},
                           {"other <i>kind</i>", 7 * kMiB, "1 MiB older than one step"}};
        card.categories_basis = "estimate: made up";
        device.categories = {card.categories[0].name, card.categories[1].name};
        card.outside = {{"context", 256 * kMiB}, {"other processes", 512 * kMiB}};
        card.lines = {{"before", "at the same point of step 4: 10 MiB less allocated"}};
        device.cards = {std::move(card)};
        device.advice = {{"expandable_segments <i>", "did nothing"},
                         {"activation checkpointing", "at most the 12 MiB", false}};
        device.advice_heading = "Popular advice";
        device.growing = {{1, held, "parameters", kMiB, 31 * kMiB}};
        device.growing_when = "from step 3 to step 9";
        device.growth = {{"grows", "by 1 MiB per step"}, {"", "<i>later</i>"}};
        device.near_miss = {{"headroom", "6 GiB at peak reserved"}};
        if (screen == PageScreen::kState) {
            device.holes_heading = "Holes: 10 MiB in 1 hole";
            device.holes = {{10 * kMiB, 1, "each serves one request of up to 10 MiB"}};
        }
        device.lines = {{"device", fmt::format("situation {} <b>", i)}};
        data.devices.push_back(std::move(device));
    }
    PageDevice bare = device_with_a_block(8);
    bare.cards = {card_of(PageScreen::kPeak)};
    bare.phase_lanes = {"phases"};
    bare.phases = {{.name = "load, step", .start_ns = 0, .end_ns = kEnd / 2, .count = 12}};
    data.devices.push_back(std::move(bare));
    return data;
}

}  // namespace fragtrace::page_test
