// Lines of the text report about pools of the program's own.
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kPools = 8;
constexpr std::size_t kLines = 3;

std::string memory_name(const ProgramPool& pool) {
    switch (pool.memory) {
        case PoolMemory::kDevice:
            return pool.device == kUnknownDevice ? "unknown device"
                                                 : fmt::format("device {}", pool.device);
        case PoolMemory::kManaged:
            return "managed memory";
        case PoolMemory::kHost:
            return "pinned host memory";
        case PoolMemory::kUnknown:
            return "memory that was not recorded";
    }
    return "";
}

std::string limit_of(const ProgramPool& pool) {
    if (pool.limit_bytes == kUnknown64) {
        return ", limit unknown (changed too often)";
    }
    return pool.limit_bytes == 0 ? "" : ", limit " + format_bytes(pool.limit_bytes);
}

std::string title_of(const ProgramPool& pool) {
    return fmt::format("{} ({}, {}{})",
                       printable(shorten(pool.name, 60)),
                       printable(pool.kind),
                       memory_name(pool),
                       limit_of(pool));
}

// "2.10 GiB in 120 blocks; reserved 3.00 GiB, free 920 MiB, largest free range 512 MiB".
std::string state_of(const ProgramPool& pool, const ProgramPoolMoment& moment) {
    std::string text = fmt::format("{} in {}",
                                   format_bytes(moment.allocated_bytes),
                                   format_counted(moment.blocks, "block", "blocks"));
    if (pool.memory == PoolMemory::kUnknown) {
        return text + "; reserved and free memory unknown";
    }
    const char* const bound = pool.shares_memory ? "at most " : "";
    return text + fmt::format("; reserved {}, free {}{}, largest free range {}{}",
                              format_bytes(moment.reserved_bytes),
                              bound,
                              format_bytes(moment.free_bytes()),
                              bound,
                              format_bytes(moment.largest_free_bytes));
}

const char* why_failed(PoolFailure failure) {
    switch (failure) {
        case PoolFailure::kUnknown:
            return "the cause is unknown";
        case PoolFailure::kNoBlockYet:
            return "the cause is unknown, since no block showed the memory of the pool";
        case PoolFailure::kShared:
            return "the cause is unknown, since other pools use the same memory";
        case PoolFailure::kTooLittle:
            return "not enough memory in the pool, even without fragmentation";
        case PoolFailure::kFragmented:
            return "fragmentation of the pool: enough memory is free, but no range is large enough";
        case PoolFailure::kRefused:
            return "a free range is large enough: the pool's own rules refused the request";
    }
    return "";
}

std::string culprit_line(const ProgramPoolMoment& moment) {
    if (moment.failure != PoolFailure::kFragmented) {
        return "";
    }
    if (moment.without_culprit_bytes == 0) {
        return "               no single line holds all blocks that are in the way\n";
    }
    const HeldBy& line = moment.culprit;
    return fmt::format("    culprit    {} in {} {}: without them a range of {} would be free\n",
                       format_bytes(static_cast<std::uint64_t>(line.bytes)),
                       format_counted(line.blocks, "block", "blocks"),
                       printable(line.label),
                       format_bytes(moment.without_culprit_bytes));
}

std::string outcome_of(const ProgramPoolRemedy& remedy) {
    switch (remedy.serves) {
        case ProgramPoolRemedy::Serves::kNo:
            return "the request still fails";
        case ProgramPoolRemedy::Serves::kPerhaps:
            return "the request may succeed, since the driver's method is not public";
        case ProgramPoolRemedy::Serves::kYes:
            return remedy.failed == 0
                       ? "the request succeeds"
                       : fmt::format(
                             "the request succeeds, but {} would fail",
                             format_counted(remedy.failed, "other request", "other requests"));
    }
    return "";
}

std::string remedy_line(const ProgramPoolRemedy& remedy) {
    const std::string limit =
        remedy.limit_bytes == 0
            ? ""
            : fmt::format(" with a limit of {}", format_bytes(remedy.limit_bytes));
    return fmt::format(
        "               {}: {}{} (estimate)\n", remedy.change, outcome_of(remedy), limit);
}

// With `brief` only the first remedy that serves the request.
std::string remedy_lines(const ProgramPool& pool, bool brief) {
    std::string rows;
    for (const ProgramPoolRemedy& remedy : pool.remedies) {
        if (!brief || (remedy.serves == ProgramPoolRemedy::Serves::kYes && rows.empty())) {
            rows += remedy_line(remedy);
        }
    }
    if (rows.empty()) {
        return "";
    }
    return fmt::format(
        "    remedies   replayed with {} ({}):\n{}",
        format_bytes(pool.remedy_bytes),
        pool.is_limited() ? "the limit of the pool" : "the most that the pool had reserved",
        rows);
}

std::string held_by(const ProgramPoolMoment& moment) {
    std::string text;
    for (std::size_t i = 0; i < std::min(kLines, moment.lines.size()); ++i) {
        const HeldBy& line = moment.lines[i];
        text += fmt::format("    {:<10} {} in {} {}\n",
                            i == 0 ? "held by" : "",
                            format_bytes(static_cast<std::uint64_t>(line.bytes)),
                            format_counted(line.blocks, "block", "blocks"),
                            printable(line.label));
    }
    if (moment.lines.size() > kLines) {
        text += "               and more lines (--json has the first ten)\n";
    }
    return text;
}

std::string failed_line(const Analysis& analysis, const ProgramPool& pool, bool brief) {
    if (pool.failures.empty()) {
        return "";
    }
    const ProgramPoolMoment& first = pool.failures.front();
    return fmt::format(
               "    failed     {}; the first of {} at {}: {}\n"
               "               {}\n",
               format_counted(pool.failed, "request", "requests"),
               first.requested_bytes == kUnknown64 ? "unknown size"
                                                   : format_bytes(first.requested_bytes),
               format_duration(analysis.timeline.events[first.event].time_ns),
               why_failed(first.failure),
               state_of(pool, first)) +
           culprit_line(first) + remedy_lines(pool, brief);
}

std::string out_of_memory_line(const Analysis& analysis, const ProgramPool& pool) {
    if (pool.at_out_of_memory.empty()) {
        return "";
    }
    const ProgramPoolMoment& first = pool.at_out_of_memory.front();
    return fmt::format("    when device {} ran out of memory at {}: {}\n",
                       pool.device,
                       format_duration(analysis.timeline.events[first.event].time_ns),
                       state_of(pool, first));
}

std::string fidelity_lines(const ProgramPool& pool) {
    if (!pool.fidelity) {
        return "";
    }
    const Fidelity& fidelity = *pool.fidelity;
    if (!fidelity.not_judged.empty()) {
        return fmt::format("    fidelity   not judged: {}\n", fidelity.not_judged);
    }
    std::string text = fmt::format(
        "    fidelity   {}: the replay reproduces {} of {} placements and {} of {} segments\n",
        fidelity_percent(fidelity.placements_equal + fidelity.segments_equal,
                         fidelity.placements + fidelity.segments),
        format_count(fidelity.placements_equal),
        format_count(fidelity.placements),
        format_count(fidelity.segments_equal),
        format_count(fidelity.segments));
    if (fidelity.placements_chosen != 0) {
        text += fmt::format(
            "               {}: the replay took the recorded one of several equal free blocks\n",
            format_counted(fidelity.placements_chosen, "placement", "placements"));
    }
    if (!fidelity.reason.empty()) {
        text += fmt::format("               first difference: {}\n", printable(fidelity.reason));
    }
    return text;
}

std::string replay_line(const ProgramPool& pool) {
    std::string text;
    for (const ProgramPoolReplay& replay : pool.replays) {
        text += fmt::format("{}{} {} ({})",
                            text.empty() ? "" : ", ",
                            replay.pool,
                            format_bytes(replay.peak_reserved_bytes),
                            replay.exact ? "exact" : "estimate");
    }
    if (text.empty()) {
        return "";
    }
    return fmt::format(
        "    simulated  peak reserved for the same requests: {}; recorded {}\n",
        text,
        pool.memory == PoolMemory::kUnknown ? "unknown" : format_bytes(pool.peak_reserved_bytes));
}

}  // namespace

std::string pool_failure(const Analysis& analysis, const DeviceAnalysis& device) {
    const auto failed =
        std::find_if(analysis.program_pools.begin(),
                     analysis.program_pools.end(),
                     [&device](const ProgramPool& pool) {
                         return !pool.failures.empty() &&
                                (pool.device == device.device || pool.device == kUnknownDevice);
                     });
    if (failed == analysis.program_pools.end()) {
        return "";
    }
    const ProgramPoolMoment& first = failed->failures.front();
    const std::string name = printable(shorten(failed->name, 60));
    const std::string asked = first.requested_bytes == kUnknown64
                                  ? std::string("a request of unknown size")
                                  : format_bytes(first.requested_bytes) + " requested";
    const std::string state = fmt::format("{} free, largest free range {}",
                                          format_bytes(first.free_bytes()),
                                          format_bytes(first.largest_free_bytes));
    switch (first.failure) {
        case PoolFailure::kFragmented:
            return fmt::format(
                "Pool {} ran out of memory despite free memory: {}, {}", name, asked, state);
        case PoolFailure::kTooLittle:
            return fmt::format("Pool {} ran out of memory: {}, {}", name, asked, state);
        default:
            return fmt::format(
                "A request of pool {} failed ({}): {}", name, asked, why_failed(first.failure));
    }
}

std::string program_pool_lines(const Analysis& analysis, bool brief, const Terminal& terminal) {
    std::string text;
    std::size_t shown = 0;
    for (const ProgramPool& pool : analysis.program_pools) {
        if (shown == kPools) {
            text += "  and more pools (--json has all)\n";
            break;
        }
        const std::string failures =
            failed_line(analysis, pool, brief) + out_of_memory_line(analysis, pool);
        if (brief && failures.empty()) {
            continue;
        }
        ++shown;
        text += "  " + title_of(pool) + "\n";
        if (!brief && pool.at_peak.event != kNoEvent) {
            text += "    peak       " + state_of(pool, pool.at_peak) + "\n" + held_by(pool.at_peak);
        }
        text += failures + fidelity_lines(pool);
        if (brief) {
            continue;
        }
        text += replay_line(pool);
        if (pool.live_blocks != 0) {
            text += fmt::format("    at the end {} in {} still allocated\n",
                                format_bytes(pool.live_bytes),
                                format_counted(pool.live_blocks, "block is", "blocks are"));
        }
    }
    return text.empty() ? "" : terminal.styled(Style::kBold, "Pools of the program") + "\n" + text;
}

}  // namespace fragtrace::analyzer
