#include "synthetic.h"

#include "analyzer/support/units.h"
#include "synthetic_held.h"
#include "synthetic_pool.h"

#include <algorithm>
#include <fmt/format.h>
#include <random>

namespace fragtrace::page_test {
namespace {

using namespace analyzer;

constexpr std::uint64_t kCapacity = 32 * kGiB;
constexpr std::uint64_t kOthers = 600 * kMiB;
constexpr std::uint64_t kBoardCapacity = 1900 * kMiB;

// train.py main > step > ... with a few native frames below each.
struct Tree {
    PageData* data;

    std::uint32_t frame(const std::string& function,
                        const std::string& file,
                        std::uint32_t line,
                        bool python) {
        const std::string base = file.substr(file.find_last_of('/') + 1);
        data->frames.push_back({function, file, line, python});
        data->frames.back().label = python ? fmt::format("{}:{} {}", base, line, function)
                                           : fmt::format("{} in {}", function, base);
        data->frames.back().library = python ? "" : "torch";
        return static_cast<std::uint32_t>(data->frames.size() - 1);
    }

    std::uint32_t node(std::uint32_t parent, std::uint32_t of) {
        data->stacks.push_back({parent, of});
        return static_cast<std::uint32_t>(data->stacks.size() - 1);
    }

    std::uint32_t python(std::uint32_t parent,
                         const std::string& function,
                         const std::string& file,
                         std::uint32_t line) {
        return node(parent, frame(function, file, line, true));
    }

    std::uint32_t native(std::uint32_t parent, const std::string& function) {
        const std::uint32_t made = node(parent, frame(function, "libtorch_cuda.so", 0, false));
        data->stacks[made].telling = data->stacks[parent].telling + 1;
        return made;
    }
};

void add_verdict(PageDevice& device,
                 Pool& pool,
                 std::uint64_t requested_bytes,
                 std::uint32_t asking,
                 const std::vector<std::pair<std::uint32_t, std::string>>& blocking) {
    PageCard card;
    card.kind = PageCardKind::kOom;
    card.time_ns = pool.now_ns;
    card.heading = "Out of memory despite free memory";
    card.question = "Which allocations block free memory?";
    card.requested_bytes = requested_bytes;
    card.bars = {{"requested", "asked", requested_bytes},
                 {"free, in holes", "free", pool.free_bytes()},
                 {"largest free block", "free", pool.largest()},
                 {"free on the device", "device", pool.device_free()}};
    card.asked_by = "model.py:40 Layer3.forward";
    card.verdict = "compaction_only";
    card.stack = asking;
    pool.write_segments();
    // The card's state is the one after all events of its time.
    add_culprits(device, pool.now_ns + 1, blocking, &card);
    std::uint64_t held_sum = 0;
    std::uint64_t live_sum = 0;
    for (const PageCulprit& row : card.culprits) {
        held_sum += row.held_open_bytes;
        live_sum += row.held.bytes;
    }
    card.sentence = fmt::format(
        "{} was requested. {} is free inside reserved segments, but the largest free block is {}. "
        "{} of live blocks hold {} of it open.",
        format_bytes(requested_bytes),
        format_bytes(pool.free_bytes()),
        format_bytes(pool.largest()),
        format_bytes(live_sum),
        format_bytes(held_sum));
    card.details = {
        "Moving live blocks together would have made room; no release of whole segments would.",
        "The cache had been released before: what is left has a live block in every segment."};
    card.assumptions = {"made-up data"};
    card.change = "expandable_segments:True: the same requests replayed, all of them served.";
    for (const PageCulprit& row : card.culprits) {
        card.holders.push_back({row.stack, row.held, "activations"});
    }
    if (!card.culprits.empty()) {
        card.who = fmt::format("{} prevents {} of free memory from being reused.",
                               card.culprits.front().held.label,
                               format_bytes(card.culprits.front().held_open_bytes));
    }
    device.markers.push_back({pool.now_ns, PageMarkerKind::kOom, card.sentence});
    device.cards.push_back(std::move(card));
    const auto run = [](std::uint64_t ooms,
                        std::uint64_t reserved,
                        const WasteSplit& waste,
                        std::uint64_t segments,
                        std::uint64_t retries) {
        return RunFigures{.peak_reserved = reserved,
                          .waste_at_peak = waste,
                          .segments_allocated = segments,
                          .retries = retries,
                          .ooms = ooms};
    };
    device.whatif = {{"as recorded: default settings",
                      "exact",
                      run(1, 31 * kGiB, {.releasable = kGiB, .inactive_split = 6 * kGiB}, 1108, 2),
                      true,
                      "",
                      true},
                     {"expandable_segments:True",
                      "estimate",
                      run(0, 26 * kGiB, {.inactive_split = kGiB}, 214, 0),
                      true,
                      "replayed",
                      false},
                     {"max_split_size_mb:64",
                      "estimate",
                      run(1, 30 * kGiB, {.releasable = kGiB, .inactive_split = 5 * kGiB}, 1204, 3),
                      true,
                      "",
                      false},
                     {"compact",
                      "at least",
                      run(0, 25 * kGiB, {}, 0, 0),
                      false,
                      "no allocator does this",
                      false}};
    device.whatif[1].cost = "none";
    device.whatif[1].commands = {.set = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                                 .run = "fragtrace try train.4711.ftrace --remedy 1"};
    device.cards.back().change_row = device.whatif[1].name;
    device.cards.back().tried = {{"tried", "expandable_segments:True: ended normally"}};
    device.totals = {{"free in holes", pool.free_bytes()}, {"retries", pool.retries, false}};
}

}  // namespace

PageData synthetic_page(std::size_t blocks) {
    PageData data;
    data.title = "train.py";
    data.processes = {{"train.py",
                       "pid 4711, rank 0",
                       "python train.py --config </script><script>alert(1)</script>",
                       {"made-up data for tests of the page"}}};
    Tree tree{&data};
    data.frames.push_back({"", "", 0, false});
    data.stacks.push_back({});
    const std::uint32_t main = tree.python(0, "main", "/home/user/project/train.py", 318);
    const std::uint32_t step = tree.python(main, "step", "/home/user/project/train.py", 201);
    std::vector<std::uint32_t> layers;
    for (std::uint32_t i = 0; i < 24; ++i) {
        const std::uint32_t at = tree.python(
            step, fmt::format("Layer{}.forward", i), "/home/user/project/model.py", 37 + i);
        layers.push_back(
            tree.native(tree.native(at, "at::native::empty_cuda"), "CUDACachingAllocator::malloc"));
    }
    const std::uint32_t log = tree.python(main, "log_samples", "/home/user/project/train.py", 240);
    const std::uint32_t samples =
        tree.native(tree.python(log, "SampleCache.add", "/home/user/project/samples.py", 33),
                    "at::native::clone");
    const std::uint32_t metric =
        tree.python(main, "keep<img src=x onerror=alert(1)>", "/home/user/project/metrics.py", 61);
    const std::uint32_t weights =
        tree.python(main, "Linear.__init__", "/home/user/project/model.py", 12);

    PageDevice device;
    device.name = "NVIDIA H100 <b>80GB</b>";
    device.virtual_gpu = true;
    device.capacity_bytes = kCapacity;
    device.streams = {"default"};
    Pool pool(&device, kCapacity - kOthers);
    std::mt19937_64 random(7);
    const auto uniform = [&random](std::uint64_t low, std::uint64_t high) {
        return low + random() % (high - low + 1);
    };
    for (int i = 0; i < 96; ++i)
        pool.allocate(uniform(120, 200) * kMiB, weights);
    const std::size_t per_step = 24 * 4;
    const std::size_t steps = std::max<std::size_t>(4, (blocks - 96) / (per_step + 2));
    // Runs of any length keep about the same number of samples, whose blocked memory fills the
    // device.
    const double keep_chance = std::min(1.0, 400.0 / static_cast<double>(steps));
    double keep_sum = 0;
    for (std::size_t s = 0; s < steps; ++s) {
        const std::uint64_t began = pool.now_ns;
        std::vector<std::int64_t> live;
        const std::uint64_t length = uniform(2, 9);
        bool failed = false;
        for (std::size_t k = 0; k < per_step && !failed; ++k) {
            const std::uint64_t size =
                k % 4 == 3 ? uniform(1, 400) * kKiB
                           : uniform(8, 16) * length * kMiB + kMiB + uniform(1, 511);
            const std::int64_t row = pool.allocate(size, layers[k / 4]);
            failed = row < 0;
            if (!failed) live.push_back(row);
            keep_sum += keep_chance / static_cast<double>(per_step);
            if (keep_sum >= 1) {
                keep_sum -= 1;
                failed = failed || pool.allocate(uniform(1200, 6000) * kKiB, samples) < 0;
            }
        }
        device.phases.push_back({fmt::format("step {}", s + 1), began, pool.now_ns + 1, 0});
        device.phases.push_back({"forward", began, pool.now_ns, 1});
        const std::uint64_t middle = pool.now_ns;
        while (!live.empty()) {
            pool.free(live.back());
            live.pop_back();
        }
        if (s % 3 == 0) pool.allocate(uniform(500, 900), metric);
        device.phases.push_back({"backward <b>pass</b>", middle, pool.now_ns, 1});
        if (failed) break;
    }
    pool.now_ns += 5'000'000;
    pool.release_cache();
    ++pool.retries;
    while (pool.device_free() > 2 * kGiB)
        pool.allocate(kGiB, weights);
    const std::uint64_t requested =
        std::max(pool.device_free() + 200 * kMiB, pool.free_bytes() * 3 / 5);
    add_verdict(device,
                pool,
                requested,
                layers[3],
                {{samples, "samples.py:33 SampleCache.add"},
                 {metric, "metrics.py:61 keep"},
                 {weights, "model.py:12 Linear.__init__"}});
    pool.now_ns += 30'000'000;
    pool.finish();
    device.others = {{0}, {kOthers}};
    // Pinned memory of a data loader: two buffers, of which the larger one lives for a while.
    device.pinned = {{pool.now_ns / 8, pool.now_ns / 4, pool.now_ns / 2},
                     {512 * kMiB, 3 * kGiB, 512 * kMiB}};
    device.phase_lanes = {"steps", "NVTX"};
    device.markers.push_back(
        {pool.now_ns / 2, PageMarkerKind::kDriverBurst, "12 cudaMallocs <script>"});
    device.markers.push_back({pool.now_ns / 3, PageMarkerKind::kEmptyCache, "empty_cache"});
    // In the second row's replay, half as much is reserved, and the pool grows once.
    for (std::uint64_t point = 0; point < 1024; ++point) {
        device.curve_times_ns.push_back(point * pool.now_ns / 1024);
        device.whatif[1].reserved_curve.push_back(point < 512 ? 10 * kGiB : 20 * kGiB);
    }
    data.devices.push_back(std::move(device));
    return data;
}

PageData checkerboard_page() {
    PageData data;
    data.title = "fragment.py";
    data.processes = {{"fragment.py", "pid 12", "", {}}};
    Tree tree{&data};
    data.frames.push_back({"", "", 0, false});
    data.stacks.push_back({});
    const std::uint32_t main = tree.python(0, "main", "/demo/fragment.py", 20);
    const std::uint32_t keep =
        tree.native(tree.python(main, "keep", "/demo/fragment.py", 11), "at::native::empty_cuda");
    const std::uint32_t drop = tree.native(tree.python(main, "scratch", "/demo/fragment.py", 14),
                                           "at::native::empty_cuda");
    const std::uint32_t big =
        tree.native(tree.python(main, "final", "/demo/fragment.py", 30), "at::native::empty_cuda");
    PageDevice device;
    device.name = "virtual GPU";
    device.virtual_gpu = true;
    device.capacity_bytes = kBoardCapacity;
    device.streams = {"default"};
    Pool pool(&device, kBoardCapacity);
    std::vector<std::int64_t> scratch;
    for (int i = 0; i < 94; ++i) {
        scratch.push_back(pool.allocate(10 * kMiB - 512, drop));
        pool.allocate(10 * kMiB - 512, keep);
        pool.now_ns += 400'000;
    }
    for (const std::int64_t row : scratch)
        pool.free(row);
    pool.now_ns += 3'000'000;
    pool.release_cache();
    add_verdict(device, pool, 512 * kMiB, big, {{keep, "fragment.py:11 keep"}});
    data.sources = {{.file = "/demo/fragment.py",
                     .first_line = 8,
                     .lines = {"def keep(sample):",
                               "    # </script><b>text</b>",
                               "    global kept",
                               "    kept.append(sample.clone())",
                               "    return len(kept)"},
                     .changed = true}};
    pool.now_ns += 2'000'000;
    pool.finish();
    data.devices.push_back(std::move(device));
    return data;
}

PageData two_device_page() {
    PageData data = checkerboard_page();
    data.processes.front().program_pools =
        "  frames (other, device 0)\n    peak       8 MiB in 2 blocks\n";
    PageDevice device;
    device.name = "second";
    device.index = 1;
    device.capacity_bytes = 8 * kGiB;
    device.end_ns = 10'000'000'000;
    device.streams = {"default", "0x55"};
    constexpr std::uint64_t kBase = 0x7f4400000000;
    device.pools = {{"", {}}, {"private pool 3 <b>", {3'500'000'000, 6'500'000'000}}};
    device.segments = {
        {.start_ns = 1000, .address = kBase, .size_bytes = 80 * kMiB, .page_bytes = 20 * kMiB},
        {.start_ns = 2000, .address = kBase + kGiB, .size_bytes = 20 * kMiB, .pool = 1}};
    BlockLives& blocks = device.blocks;
    const auto add = [&](std::uint64_t start,
                         std::uint64_t freed,
                         std::uint64_t end,
                         std::uint64_t offset,
                         std::uint64_t size,
                         std::uint16_t stream) {
        blocks.start_ns.push_back(start);
        blocks.freed_ns.push_back(freed);
        blocks.end_ns.push_back(end);
        blocks.address.push_back(kBase + offset);
        blocks.size_bytes.push_back(size);
        blocks.requested_bytes.push_back(size - 100);
        blocks.stack.push_back(1);
        blocks.stream.push_back(stream);
    };
    add(5'000, kNeverNs, kNeverNs, 10 * kMiB, 30 * kMiB, 0);                   // pages 0 and 1
    add(1'000'000'000, 2'000'000'000, 6'000'000'000, 45 * kMiB, 5 * kMiB, 1);  // page 2, pending
    PageCard card;
    card.kind = PageCardKind::kRetry;
    card.screen = PageScreen::kRetry;
    card.question = "Why did the pool have to release its cache?";
    card.time_ns = 7'000'000'000;
    card.heading = "Retry";
    const HeldBy held{.label = "holder <i>one</i>", .bytes = 30 * kMiB, .blocks = 1};
    card.holders = {{1, held, "parameters"}};
    card.holders_more = "and 3 more lines: 7 MiB";
    PageCard peak = card;
    peak.kind = PageCardKind::kNearMiss;
    peak.screen = PageScreen::kPeak;
    peak.question = "Which lines hold <b>the memory</b> at the peak?";
    peak.holders_when = "at the peak of allocated memory, 8 s";
    peak.since = "step 4";
    peak.holders.front().change = 10 * kMiB;
    peak.in_use_bytes = 37 * kMiB;
    peak.categories = {{"parameters", 30 * kMiB}, {"other <i>kind</i>", 7 * kMiB, "1 MiB older"}};
    peak.categories_basis = "estimate: made up";
    device.categories = {peak.categories[0].name, peak.categories[1].name};
    peak.outside = {{"context", 256 * kMiB}};
    peak.lines = {{"before", "at the same point of step 4: 10 MiB less"}};
    peak.time_ns = 8'000'000'000;
    peak.heading = "No out-of-memory, but a Retry";
    peak.bars = {{"in use then", "used", 2 * kGiB},
                 {"cached", "cached", 0, 2 * kGiB},
                 {"left on the device", "device", 6 * kGiB, 2 * kGiB}};
    device.cards = {std::move(card), std::move(peak)};
    device.advice_heading = "Popular advice";
    device.advice = {{"expandable_segments <i>", "did nothing"},
                     {"activation checkpointing", "at most the 12 MiB", false}};
    device.growing = {{2, held, "parameters", kMiB, 30 * kMiB}};
    device.growing_when = "from step 3 to step 9";
    device.growth = {{"grows", "by 1 MiB per step"}, {"", "<i>later</i>"}};
    device.near_miss = {{"headroom", "6 GiB at peak reserved"}};
    device.lines = {{"device 1", "second, settings: <b>default</b>"}};
    data.processes.front().lines = {{"pinned", "at most 64 MiB in 1 allocation"}};
    data.processes.front().phases = {{"train <b>",
                                      3,
                                      2'000'000'000,
                                      30 * kMiB,
                                      80 * kMiB,
                                      -2 * static_cast<int64_t>(kMiB),
                                      4,
                                      1}};
    data.devices.push_back(std::move(device));
    return data;
}

}  // namespace fragtrace::page_test
