// Comparison of two runs: which lines match, where phases start to differ, and the limits for a
// side that lists only its largest holders.
#include "analyzer/analysis/compare/comparison.h"

#include "analyzer/analysis/compare/profile_json.h"
#include "analyzer/report/compare_report.h"
#include "analyzer/report/page/page_compare.h"
#include "analyzer/report/text/compare_figures.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/reader.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;
using fragtrace::testing::write_file;

namespace {

constexpr std::uint64_t kBase = 0x200000000000;

HeldByLine line(const std::string& label, std::uint64_t mib) {
    HeldBy held{.label = label};
    held.add(mib * kMiB, 1);
    return {held, {{{label, "main.py:1 main"}, held}}};
}

RunProfile run_with(std::vector<HeldByLine> holders) {
    RunProfile run;
    run.has_holders = run.all_holders = run.has_phases = run.has_facts = true;
    DeviceProfile& device = run.devices.emplace_back();
    for (const HeldByLine& line : holders) {
        device.run.peak_reserved += line.held.bytes;
    }
    device.run.waste_at_peak.requested = device.run.peak_reserved;
    device.holders = std::move(holders);
    return run;
}

void add_phase(RunProfile* run, const std::string& name, std::vector<PhaseStretch> stretches) {
    PhaseProfile& phase = run->phases.emplace_back();
    phase.name = name;
    phase.count = stretches.size();
    phase.stretches = std::move(stretches);
}

std::string text_of(const Comparison& comparison) {
    return compare_text(comparison, Terminal(1, ColorChoice::kNever));
}

// One block of `mib` MiB from train.py:`number`.
std::string trace_with(const TemporaryFolder& folder, std::uint64_t mib, std::uint32_t number) {
    TraceWriter trace;
    trace.fact("allocator_conf", mib == 8 ? "" : "expandable_segments:True");
    trace.set_python_stack(trace.python_node(0, trace.code("step", "train.py", 1), number));
    trace.device_alloc(kBase, 2 * kMiB, true);
    trace.block_alloc(kBase, 2 * kMiB, 2 * kMiB);
    trace.device_alloc(kBase + 2 * kMiB, 20 * kMiB, true);
    trace.block_alloc(kBase + 2 * kMiB, mib * kMiB, mib * kMiB);
    trace.end(EndReason::kNormal);
    trace.footer();
    const std::string path = folder.file(std::to_string(mib) + ".ftrace");
    trace.save(path);
    return path;
}

}  // namespace

TEST_CASE("lines are sorted by growth, lines with equal memory are left out") {
    const Comparison result =
        compare(run_with({line("a.py:1 f", 10), line("b.py:2 g", 30), line("c.py:3 h", 5)}),
                run_with({line("a.py:1 f", 12), line("b.py:2 g", 30), line("d.py:4 k", 7)}));
    REQUIRE(result.devices.size() == 1);
    const DeviceComparison& device = result.devices[0];
    REQUIRE(device.grew.size() == 2);
    CHECK(device.grew[0].label() == "d.py:4 k");
    CHECK(device.grew[0].a->bytes == 0);
    CHECK(device.grew[1].b->bytes - device.grew[1].a->bytes == 2 * kMiB);
    REQUIRE(device.grew[1].stacks.size() == 1);
    CHECK(device.grew[1].stacks[0].frames.size() == 2);
    REQUIRE(device.shrank.size() == 1);
    CHECK(device.shrank[0].label() == "c.py:3 h");
    CHECK(device.unknown.empty());
}

TEST_CASE("a moved line still matches, unless its function has two such lines") {
    const Comparison moved =
        compare(run_with({line("a.py:1 f", 10)}), run_with({line("a.py:9 f", 12)}));
    REQUIRE(moved.devices[0].grew.size() == 1);
    CHECK(moved.devices[0].grew[0].label() == "a.py:9 f");
    CHECK(moved.devices[0].grew[0].a->label == "a.py:1 f");
    CHECK(moved.devices[0].grew[0].a->bytes == 10 * kMiB);
    CHECK(moved.devices[0].shrank.empty());

    const Comparison two = compare(run_with({line("a.py:1 f", 10)}),
                                   run_with({line("a.py:8 f", 12), line("a.py:9 f", 1)}));
    CHECK(two.devices[0].grew.size() == 2);
    CHECK(two.devices[0].shrank.size() == 1);
}

TEST_CASE("lines that an edit moved match by equal memory, and the new one remains") {
    const Comparison edited = compare(
        run_with({line("a.py:4 f", 404), line("a.py:11 f", 811)}),
        run_with({line("b/a.py:6 f", 404), line("b/a.py:5 f", 404), line("b/a.py:13 f", 811)}));
    REQUIRE(edited.devices[0].grew.size() == 1);
    CHECK(edited.devices[0].grew[0].label() == "b/a.py:6 f");
    CHECK(edited.devices[0].shrank.empty());
}

TEST_CASE("lines of two copies of a program match, although their folders differ") {
    HeldByLine in_a = line("old/a.py:1 f", 10);
    HeldByLine in_b = line("new/a.py:9 f", 12);
    in_a.stacks = {{.frames = {"old/a.py:1 f", "old/main.py:3 g"}, .held = in_a.held}};
    in_b.stacks = {{.frames = {"new/a.py:9 f", "new/main.py:4 g"}, .held = in_b.held}};
    const Comparison copies = compare(run_with({in_a}), run_with({in_b}));
    REQUIRE(copies.devices[0].grew.size() == 1);
    const LineChange& change = copies.devices[0].grew[0];
    CHECK(change.label() == "new/a.py:9 f");
    CHECK(change.a->bytes == 10 * kMiB);
    REQUIRE(change.stacks.size() == 1);
    CHECK(change.stacks[0].a.bytes == 10 * kMiB);
    CHECK(copies.devices[0].shrank.empty());

    // The folder decides where one run has the file in two folders.
    const Comparison two = compare(run_with({line("x/a.py:1 f", 10), line("y/a.py:1 f", 10)}),
                                   run_with({line("z/a.py:1 f", 12), line("y/a.py:1 f", 11)}));
    CHECK(two.devices[0].grew.size() == 2);
    CHECK(two.devices[0].shrank.empty());
    const Comparison unclear = compare(run_with({line("x/a.py:1 f", 10), line("y/a.py:1 f", 9)}),
                                       run_with({line("z/a.py:1 f", 12)}));
    CHECK(unclear.devices[0].grew.size() == 1);
    CHECK(unclear.devices[0].shrank.size() == 2);
}

TEST_CASE("a line missing from a list of the largest holders counts as unknown") {
    RunProfile short_list = run_with({line("a.py:1 f", 10)});
    short_list.all_holders = false;
    const Comparison result =
        compare(short_list, run_with({line("a.py:1 f", 12), line("b.py:2 g", 3)}));
    CHECK(result.devices[0].grew.size() == 1);
    REQUIRE(result.devices[0].unknown.size() == 1);
    CHECK_FALSE(result.devices[0].unknown[0].a);
    CHECK(text_of(result).find("not listed") != std::string::npos);
}

TEST_CASE("phases match by name and number, the first one to end differently is reported") {
    RunProfile a = run_with({line("a.py:1 f", 10)});
    RunProfile b = a;
    add_phase(&a, "epoch", {{{10, 20, 0}, 4}});
    add_phase(&a,
              "step",
              {{{5, 20, 0}, 0}, {{5, 20, 0}, 1, {100, 200}}, {{5, 20, 0}, 2}, {{5, 20, 0}, 3}});
    add_phase(&a, "save", {{{1, 20, 0}, 5}});
    add_phase(&b, "epoch", {{{12, 20, 2}, 4}});
    add_phase(&b,
              "step",
              {{{5, 20, 0}, 0}, {{6, 20, 1}, 1, {107, 207}}, {{7, 20, 1}, 2}, {{8, 20, 1}, 3}});
    add_phase(&b, "test", {{{1, 20, 0}, 5}});
    const Comparison result = compare(a, b);
    REQUIRE(result.phases.size() == 4);
    REQUIRE(result.first_divergence);
    const PhaseComparison& first = result.phases[*result.first_divergence];
    CHECK(first.name == "step");
    CHECK(first.parts_at == 1);
    CHECK(first.a_there->peak_allocated == 5);
    CHECK(first.a_time->begin_ns == 100);
    CHECK(first.b_time->end_ns == 207);
    CHECK(first.b_there->left_bytes == 1);
    CHECK_FALSE(result.phases[2].b);
    CHECK_FALSE(result.phases[3].a);
    CHECK(text_of(result).find("first difference in the 2nd step") != std::string::npos);

    RunProfile without = b;
    without.has_phases = false;
    CHECK(compare(a, without).phases.empty());
    const Comparison equal = compare(a, a);
    CHECK_FALSE(equal.first_divergence);
    CHECK(text_of(equal).find("Phases: equal in both") != std::string::npos);
}

TEST_CASE("settings that change memory are compared, host names and counters are not") {
    RunProfile a = run_with({});
    RunProfile b = a;
    a.facts = {{"host", "one"}, {"torch_version", "2.6"}, {"environment.FRAGTRACE_OUTPUT", "x"}};
    b.facts = {{"host", "two"}, {"torch_version", "2.15"}, {"allocator_conf", "backend:native"}};
    const Comparison result = compare(a, b);
    REQUIRE(result.settings.size() == 2);
    CHECK(result.settings[0].key == "allocator_conf");
    CHECK(result.settings[0].a.empty());
    CHECK(result.settings[1].b == "2.15");
}

TEST_CASE("long settings are shown from shortly before their difference") {
    RunProfile a = run_with({});
    RunProfile b = a;
    const std::string program =
        "python /home/user/project/train.py --layers 3 --width 256 --batch ";
    a.facts = {{"command_line", program + "4 --end"}};
    b.facts = {{"command_line", program + "16"}};
    const Comparison result = compare(a, b);
    CHECK(text_of(result).find("... --batch 4 --end -> ... --batch 16\n") != std::string::npos);
    CHECK(different_settings(result, 400)[0].a == program + "4 --end");
    b.facts = {};
    CHECK(different_settings(compare(a, b), 12)[0].a == "python /h...");
    CHECK(different_settings(compare(a, b), 12)[0].b == "(not set)");
}

TEST_CASE("two traces: holders add up to the peak, the first different request is found") {
    TemporaryFolder folder;
    const auto a = read_trace(trace_with(folder, 8, 10));
    const auto b = read_trace(trace_with(folder, 11, 12));
    REQUIRE(a.ok());
    REQUIRE(b.ok());
    Symbolizer a_symbols(*a);
    Symbolizer b_symbols(*b);
    Comparison result = compare(profile_of(*a, &a_symbols), profile_of(*b, &b_symbols));
    result.requests = first_requests(*a, &a_symbols, *b, &b_symbols);
    REQUIRE(result.devices.size() == 1);
    CHECK(result.devices[0].a->run.peak_reserved == 22 * kMiB);
    REQUIRE(result.devices[0].grew.size() == 1);
    const LineChange& grown = result.devices[0].grew[0];
    CHECK(grown.label() == "train.py:12 step");
    CHECK(grown.a->label == "train.py:10 step");
    CHECK(grown.a->bytes == 10 * kMiB);
    CHECK(static_cast<std::uint64_t>(grown.a->bytes) ==
          result.devices[0].a->run.waste_at_peak.requested);
    REQUIRE(result.requests.size() == 1);
    CHECK(result.requests[0].number == 1);
    CHECK(result.requests[0].a_bytes == 8 * kMiB);
    CHECK(result.requests[0].b_label == "train.py:12 step");
    CHECK(result.requests[0].a_ns == a->events[3].time_ns);
    CHECK(result.devices[0].b->peak_ns == b->events[3].time_ns);
    REQUIRE(result.settings.size() == 1);
    CHECK(result.settings[0].b == "expandable_segments:True");
    CHECK(first_requests(*a, &a_symbols, *a, &a_symbols).empty());
}

TEST_CASE("the headline names the line that explains the difference, if one does") {
    const auto headline = [](std::vector<HeldByLine> a, std::vector<HeldByLine> b) {
        return compare_headline(compare(run_with(std::move(a)), run_with(std::move(b))).devices[0]);
    };
    CHECK(headline({line("a.py:1 f", 10), line("b.py:2 g", 9)},
                   {line("a.py:1 f", 40), line("b.py:2 g", 3)}) ==
          "B reserves 24 MiB more than A at its peak (+126.3 %): requested +24 MiB. a.py:1 f holds "
          "30 MiB more at the peak.");
    CHECK(headline({line("a.py:1 f", 40), line("b.py:2 g", 3)},
                   {line("a.py:1 f", 10), line("b.py:2 g", 9)})
              .find("a.py:1 f holds 30 MiB less at the peak.") != std::string::npos);
    CHECK(headline({line("a.py:1 f", 40), line("b.py:2 g", 3)},
                   {line("a.py:1 f", 37), line("b.py:2 g", 6)}) ==
          "Both reserve 43 MiB at their peaks. b.py:2 g holds 3 MiB more at the peak.");
    CHECK(headline({line("a.py:1 f", 40)}, {line("a.py:1 f", 40)}) ==
          "Both reserve 40 MiB at their peaks.");

    // Waste explains it.
    RunProfile more_waste = run_with({line("a.py:1 f", 41)});
    more_waste.devices[0].run.peak_reserved += 100 * kMiB;
    more_waste.devices[0].run.waste_at_peak.inactive_split += 100 * kMiB;
    CHECK(
        compare_headline(compare(run_with({line("a.py:1 f", 40)}), more_waste).devices[0]) ==
        "B reserves 101 MiB more than A at its peak (+252.5 %): inactive split +100 MiB, requested "
        "+1 MiB.");
}

TEST_CASE("the headline says in words how often each run fails or retries") {
    const auto headline =
        [](std::uint64_t a_ooms, std::uint64_t b_ooms, std::uint64_t a_retries = 0) {
            RunProfile a = run_with({line("a.py:1 f", 40)});
            RunProfile b = run_with({line("a.py:1 f", 40)});
            a.devices[0].run.ooms = a_ooms;
            b.devices[0].run.ooms = b_ooms;
            a.devices[0].run.retries = a_retries;
            return compare_headline(compare(std::move(a), std::move(b)).devices[0]);
        };
    CHECK(headline(1, 0).ends_with(" A runs out of memory once, B never."));
    CHECK(headline(0, 1234).ends_with(" A never runs out of memory, B 1,234 times."));
    CHECK(headline(1, 1, 3).ends_with(" A retries 3 times, B never."));
    CHECK(headline(1, 1).ends_with(" at their peaks."));
    CHECK(headline(kUnknown64, 1).ends_with(" an unknown number of times, B once."));
}

TEST_CASE("the page of two runs has the sentences and figures of the text") {
    RunProfile a = run_with({line("a.py:1 f", 10), line("c.py:3 h", 5)});
    RunProfile b = run_with({line("a.py:9 f", 12)});
    a.devices[0].peak_ns = 77;
    b.facts = {{"torch_version", "2.15"}};
    add_phase(&a, "step", {{{5, 20, 0}, 0, {100, 200}}});
    add_phase(&b, "step", {{{6, 20, 0}, 0, {300, 400}}});
    const Comparison comparison = compare(std::move(a), std::move(b));
    const std::string text = text_of(comparison);
    const PageComparison page = compared_runs(comparison);
    REQUIRE(page.devices.size() == 1);
    const PageComparedDevice& device = page.devices[0];
    CHECK(text.starts_with(device.headline + "\n"));
    CHECK(device.peaks_ns == std::array<std::uint64_t, 2>{77, kPageUnknown});
    CHECK(device.devices[0] == kPageNoDevice);
    REQUIRE(device.lines.size() == 2);
    CHECK(device.lines[1].label() == "c.py:3 h");
    REQUIRE(page.places.size() == 1);
    CHECK(text.find(page.places[0].text.substr(std::string("Phases: ").size())) !=
          std::string::npos);
    CHECK(page.places[0].b->begin_ns == 300);
    REQUIRE(page.phases.size() == 1);
    CHECK(page.phases[0].a->end_ns == 200);
    CHECK_FALSE(page.phases_equal);
    REQUIRE(page.settings.size() == 1);
    CHECK(page.settings[0].a == "(not set)");
    for (const std::string& run : page.runs) {
        CHECK(text.find(run) != std::string::npos);
    }
}

TEST_CASE("JSON that is not a report is refused in one line") {
    TemporaryFolder folder;
    const std::string path = folder.file("x.json");
    for (const char* text : {"{",
                             "{}",
                             R"({"schema": 2, "devices": []})",
                             R"({"schema": 1, "devices": [{"index": 0}]})",
                             R"({"schema": 1, "devices": [], "phases": [{"name": 1}]})"}) {
        write_file(path, text);
        CHECK(looks_like_json(path));
        const auto profile = read_profile_json(path);
        REQUIRE_FALSE(profile.ok());
        CHECK(profile.error().code == ErrorCode::kInput);
        CHECK(profile.error().message.find('\n') == std::string::npos);
    }
    write_file(path, R"({"schema": 1, "devices": []})");
    CHECK(read_profile_json(path).ok());
    CHECK_FALSE(looks_like_json(folder.file("missing")));

    // The report lists device 0 once, or the same device twice.
    const auto report_of = [&](std::initializer_list<int> indices) {
        std::string devices;
        for (const int index : indices) {
            devices += (devices.empty() ? "" : ", ") + std::string(R"({"index": )") +
                       std::to_string(index) +
                       R"(, "peak": {"requested": 1, "allocated": 1, "active": 1, "reserved": 1},
                       "waste_at_peak": {"rounding": 0, "slack": 0, "pending": 0, "releasable": 0,
                       "inactive_split": 0}, "segments_allocated": 1, "segments_freed": 0,
                       "retries": 0, "ooms": 0})";
        }
        write_file(path, R"({"schema": 1, "devices": [)" + devices + "]}");
        return read_profile_json(path);
    };
    CHECK(report_of({0, 1}).ok());
    const auto twice = report_of({1, 0, 1});
    REQUIRE_FALSE(twice.ok());
    CHECK(twice.error().message.find("gpu1 twice") != std::string::npos);
}
