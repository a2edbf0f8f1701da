#include "analyzer/support/units.h"
#include "synthetic.h"

#include <fmt/format.h>
#include <utility>

namespace fragtrace::page_test {

using namespace analyzer;

namespace {

constexpr int kRanks = 40;
constexpr int kFailed = 5;  // the page has blocks on both of its devices
constexpr int kOther = 7;
constexpr int kKilled = 1;  // when it ended is not known
constexpr std::size_t kColumns = 64;

PageRank row_of(int rank) {
    PageRank row;
    row.rank = rank;
    row.pid = 4000 + static_cast<std::uint32_t>(rank);
    row.gpu = rank % 8;
    row.capacity_bytes = 2 * kGiB;
    row.run.peak_allocated = kGiB + static_cast<std::uint64_t>(rank) * kMiB;
    row.run.peak_reserved = kGiB + static_cast<std::uint64_t>(rank) * 2 * kMiB;
    row.start_after_ns = static_cast<std::uint64_t>(rank) * 1'000'000;
    row.ended = "ended normally";
    row.program = "python <img src=x onerror=alert(1)>.py";
    row.file = fmt::format("<b>job</b>.{}.ftrace", row.pid);
    row.command = fmt::format("fraganalyze '=cmd </script>/{}' --html {}.html", row.file, row.pid);
    for (std::size_t column = 0; column < kColumns; ++column) {
        const bool runs = column >= static_cast<std::size_t>(rank) / 4;
        row.reserved_heat.push_back(runs ? static_cast<std::uint8_t>(100 + column) : 0);
        row.allocated_heat.push_back(runs ? static_cast<std::uint8_t>(60 + column) : 0);
    }
    if (rank == kKilled) {
        for (std::size_t column = kColumns - 8; column < kColumns; ++column) {
            row.reserved_heat[column] = row.allocated_heat[column] = kPageHeatUnknown;
        }
    }
    return row;
}

}  // namespace

PageData job_page() {
    PageData data = two_device_page();
    data.title = "job <i>made up</i>";
    data.processes[0].process = "pid 4005, rank 5";
    PageDevice other = data.devices[0];
    other.process = 1;
    other.name = "other";
    other.index = 7;
    other.cards.clear();
    other.markers.clear();
    other.totals = {{"peak reserved", 123'456'789}};
    data.devices.push_back(std::move(other));
    data.processes.push_back({"other.py",
                              "pid 4007, rank 7",
                              "python other.py </script>",
                              {"<u>note</u> of the other"}});
    data.heat = {.columns = kColumns, .column_ns = 2'000'000, .full_bytes = 3 * kGiB};
    for (int rank = 0; rank < kRanks; ++rank) {
        PageRank row = row_of(rank);
        if (rank == kFailed) {
            row.gpu = 0;
            row.run.ooms = 1;
            row.first_oom_ns = 80'000'000;
            row.run.peak_reserved = row.capacity_bytes;
            row.device = 0;
            data.ranks.push_back(row);
            row.gpu = 1;
            row.run.ooms = 0;
            row.first_oom_ns = kNeverNs;
            row.run.retries = 1;
            row.device = 1;
        } else if (rank == kOther) {
            row.device = 2;
        } else if (rank == 23) {
            row.run.ooms = 2;
        } else if (rank == 31) {
            row.gpu = -1;
        }
        data.ranks.push_back(std::move(row));
    }
    data.ranks.back().trace = false;
    data.ranks.back().host =
        "node\xe2\x80\xae"
        "2";
    data.job = {
        {PageJobRowKind::kFailure,
         "",
         {{"rank 5", {kFailed}}, {" of 40 ran out of memory first, 80 ms after the job began"}}},
        {PageJobRowKind::kReport, "verdict", {{"Out of <b>memory</b> (exact)"}}},
        {PageJobRowKind::kReport, "line", {{"evil\xe2\x80\xae.py:3 <img src=x onerror=alert(1)>"}}},
        {PageJobRowKind::kRow,
         "others",
         {{"1 also ran out of memory; by the clock of node\xe2\x80\xae"
           "2, "},
          {"rank 39", {40}},
          {" failed first: clocks of hosts may differ"}}},
        {PageJobRowKind::kRow, "equal", {{"ranks 6-8", {7, 8, 9}}, {" (3): peak 1 GiB"}}},
        {PageJobRowKind::kRow,
         "differs",
         {{"rank 7", {8}}, {": peak 1 GiB, 3 MiB more than "}, {"ranks 6, 8", {7, 9}}}},
        {PageJobRowKind::kRow,
         "",
         {{"2 more groups with other peaks or lines: see the table of all processes"}}},
        {PageJobRowKind::kUnreadable, "unreadable", {{"<s>bad</s>.ftrace: is not a trace"}}}};
    data.unreadable = {{"<s>bad</s>.ftrace", "is not a trace"}};
    return data;
}

}  // namespace fragtrace::page_test
