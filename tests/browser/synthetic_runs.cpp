#include "analyzer/support/units.h"
#include "synthetic.h"

#include <algorithm>
#include <utility>

namespace fragtrace::page_test {

using namespace analyzer;

namespace {

constexpr std::size_t kBlocks = 2000;
constexpr const char* kSamples = "samples.py:33 SampleCache.add";
constexpr const char* kWeights = "model.py:12 Linear.__init__";

std::uint64_t slower(std::uint64_t time_ns) {
    return time_ns == kNeverNs ? kNeverNs : time_ns / 4 * 5;
}

std::string label_of(const PageData& data, std::uint32_t stack) {
    std::uint32_t node = stack;
    for (std::uint32_t up = data.stacks[stack].telling; up > 0; --up) {
        node = data.stacks[node].parent;
    }
    return data.frames[data.stacks[node].frame].label;
}

// The same run without the blocks that SampleCache keeps. It does not fail, and takes a quarter
// more time.
PageDevice run_before(const PageData& data) {
    PageDevice device = data.devices[0];
    device.cards.clear();
    device.markers.clear();
    device.whatif.clear();
    device.curve_times_ns.clear();
    BlockLives kept;
    const BlockLives& all = device.blocks;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (label_of(data, all.stack[i]) == kSamples) continue;
        kept.start_ns.push_back(slower(all.start_ns[i]));
        kept.freed_ns.push_back(slower(all.freed_ns[i]));
        kept.end_ns.push_back(slower(all.end_ns[i]));
        kept.address.push_back(all.address[i]);
        kept.size_bytes.push_back(all.size_bytes[i]);
        kept.requested_bytes.push_back(all.requested_bytes[i]);
        kept.stack.push_back(all.stack[i]);
        kept.stream.push_back(all.stream[i]);
    }
    device.blocks = std::move(kept);
    for (SegmentLife& segment : device.segments) {
        segment.start_ns = slower(segment.start_ns);
        segment.end_ns = slower(segment.end_ns);
    }
    for (PagePhase& phase : device.phases) {
        phase.start_ns = slower(phase.start_ns);
        phase.end_ns = slower(phase.end_ns);
    }
    device.end_ns = slower(device.end_ns);
    device.process = 1;
    return device;
}

LineChange line(const std::string& label, std::uint64_t a_mib, std::uint64_t b_mib) {
    LineChange change{HeldBy{.label = label}, HeldBy{.label = label}, {}};
    change.a->add(a_mib * kMiB, 3);
    change.b->add(b_mib * kMiB, 4);
    StackChange& stack = change.stacks.emplace_back();
    stack.frames = {label, "train.py:240 log_samples", "train.py:318 <main>"};
    stack.a.add(a_mib * kMiB, 3);
    stack.b.add(b_mib * kMiB, 4);
    return change;
}

PageComparison comparison_of(const PageData& data) {
    PageComparison made;
    made.runs = {"before.ftrace  python train.py, 1,900 events",
                 "after.ftrace  python train.py --log '</script>', 2,000 events"};
    made.processes = {1, 0};
    PageComparedDevice& device = made.devices.emplace_back();
    device.devices = {1, 0};
    const std::uint64_t peak_ns = data.devices[0].cards[0].time_ns;
    device.peaks_ns = {slower(peak_ns), peak_ns};
    device.headline =
        "B reserves 1.2 GiB more than A at its peak (+4.0 %): requested +1.1 GiB. "
        "samples.py:33 SampleCache.add holds 800 MiB more at the peak.";
    device.figures = {{"peak reserved", "29.8 GiB", "31 GiB", "+1.2 GiB (+4.0 %)"},
                      {"at it: requested", "25 GiB", "26.1 GiB", "+1.1 GiB (+4.4 %)", true},
                      {"retries", "0", "1", "+1"},
                      {"cudaMallocs", "200", "200"}};
    device.lines = {line(kSamples, 0, 800), line(kWeights, 4096, 4000)};
    device.lines[0].a->label = "samples.py:31 SampleCache.add";
    for (int i = 0; i < 9; ++i) {
        device.lines.push_back(line("other.py:" + std::to_string(i) + " <b>f</b>", 10, 9));
    }
    const PagePhase& step = *std::find_if(
        data.devices[0].phases.begin(), data.devices[0].phases.end(), [](const PagePhase& phase) {
            return phase.name == "step 3";
        });
    const TimeSpan a{slower(step.start_ns), slower(step.end_ns)};
    const TimeSpan b{step.start_ns, step.end_ns};
    made.places = {{"Steps on gpu0: A 10, B 10; first difference in the 3rd: made up", 0, a, b},
                   {"First different request on gpu0: the 40th; A requests no more", 0, {}, b}};
    made.phases = {{.name = "log <i>x</i>",
                    .count = "3",
                    .allocated = "1 GiB -> 2 GiB",
                    .reserved = "2 GiB",
                    .change = "0 B",
                    .a = a,
                    .b = b},
                   {.name = "save", .only_in = "A"}};
    made.settings = {{"command_line", "python train.py", "python train.py --log '</script>'"}};
    return made;
}

}  // namespace

PageData two_run_page() {
    PageData data = synthetic_page(kBlocks);
    data.title = "before and after";
    data.processes.push_back(data.processes[0]);
    data.processes[1].process = "pid 4700";
    data.devices.push_back(run_before(data));
    data.comparison = comparison_of(data);
    return data;
}

}  // namespace fragtrace::page_test
