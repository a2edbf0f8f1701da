// Lines of the text report about pools of the program's own.
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kPools = 8;
constexpr std::size_t kLines = 3;
constexpr std::size_t kLeastLabel = 40;

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

std::string why_failed(const ProgramPool& pool, const ProgramPoolMoment& moment) {
    if (pool.memory == PoolMemory::kUnknown || moment.requested_bytes == kUnknown64) {
        return "the cause is unknown";
    }
    if (moment.reserved_bytes == 0) {
        return "the cause is unknown, since no block showed the memory of the pool";
    }
    if (pool.shares_memory) {
        return "the cause is unknown, since other pools use the same memory";
    }
    if (moment.free_bytes() < moment.requested_bytes) {
        return "not enough memory in the pool, even without fragmentation";
    }
    if (moment.largest_free_bytes < moment.requested_bytes) {
        return "fragmentation of the pool: enough memory is free, but no range is large enough";
    }
    return "a free range is large enough: the pool's own rules refused the request";
}

std::string held_by(const ProgramPoolMoment& moment, const Terminal& terminal) {
    std::string text;
    for (std::size_t i = 0; i < std::min(kLines, moment.lines.size()); ++i) {
        const HeldBy& line = moment.lines[i];
        text += fmt::format(
            "    {:<10} {} in {} {}\n",
            i == 0 ? "held by" : "",
            format_bytes(static_cast<std::uint64_t>(line.bytes)),
            format_counted(line.blocks, "block", "blocks"),
            printable(shorten(line.label, std::max(kLeastLabel, terminal.width() / 2))));
    }
    if (moment.lines.size() > kLines) {
        text += "               and more lines (--json has the first ten)\n";
    }
    return text;
}

std::string failed_line(const Analysis& analysis, const ProgramPool& pool) {
    if (pool.failures.empty()) {
        return "";
    }
    const ProgramPoolMoment& first = pool.failures.front();
    return fmt::format(
        "    failed     {}; the first of {} at {}: {}\n"
        "               {}\n",
        format_counted(pool.failed, "request", "requests"),
        first.requested_bytes == kUnknown64 ? "unknown size" : format_bytes(first.requested_bytes),
        format_duration(analysis.timeline.events[first.event].time_ns),
        why_failed(pool, first),
        state_of(pool, first));
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

std::string replay_line(const ProgramPool& pool) {
    std::string text;
    for (const ProgramPoolReplay& replay : pool.replays) {
        text += fmt::format("{}{} {}",
                            text.empty() ? "" : ", ",
                            replay.pool,
                            format_bytes(replay.peak_reserved_bytes));
    }
    if (text.empty()) {
        return "";
    }
    return fmt::format(
        "    simulated  peak reserved for the same requests: {}; recorded {} ({})\n",
        text,
        pool.memory == PoolMemory::kUnknown ? "unknown" : format_bytes(pool.peak_reserved_bytes),
        pool.fidelity ? "estimates, with the pool's settings"
                      : "estimates: the pool's settings are not known");
}

// "fidelity 120 of 120 placements equal, 2 of 2 segments".
std::string fidelity_of(const ProgramPool& pool) {
    if (!pool.fidelity) {
        return "";
    }
    const ProgramPoolFidelity& fidelity = *pool.fidelity;
    if (!fidelity.not_judged.empty()) {
        return "    fidelity   not judged: " + fidelity.not_judged + "\n";
    }
    std::string text =
        fmt::format("    fidelity   {} of {} placements equal, {} of {} segments ({}, {})\n",
                    fidelity.placements_equal,
                    fidelity.placements,
                    fidelity.segments_equal,
                    fidelity.segments,
                    printable(pool.kind),
                    printable(pool.settings));
    if (!fidelity.reason.empty()) {
        text += "               the first difference: " + fidelity.reason + "\n";
    }
    return text;
}

std::string remedies_of(const ProgramPool& pool) {
    std::string text;
    for (const ProgramPoolRemedy& remedy : pool.remedies) {
        text += fmt::format("    {:<10} {}: {} of {} fail{} (estimate{})\n",
                            text.empty() ? "try" : "",
                            remedy.setting,
                            remedy.failed,
                            format_counted(pool.failed, "request", "requests"),
                            remedy.failed == 0 ? ", all are served" : "",
                            remedy.at_least ? ", best case" : "");
    }
    return text;
}

}  // namespace

std::string program_pool_lines(const Analysis& analysis, bool brief, const Terminal& terminal) {
    std::string text;
    std::size_t shown = 0;
    for (const ProgramPool& pool : analysis.program_pools) {
        if (shown == kPools) {
            text += "  and more pools (--json has all)\n";
            break;
        }
        const std::string failures =
            failed_line(analysis, pool) + out_of_memory_line(analysis, pool) + remedies_of(pool);
        if (brief && failures.empty()) {
            continue;
        }
        ++shown;
        text += "  " + title_of(pool) + "\n";
        if (!brief && pool.at_peak.event != kNoEvent) {
            text += "    peak       " + state_of(pool, pool.at_peak) + "\n" +
                    held_by(pool.at_peak, terminal);
        }
        text += failures;
        if (brief) {
            continue;
        }
        text += fidelity_of(pool) + replay_line(pool);
        if (pool.live_blocks != 0) {
            text += fmt::format("    at the end {} in {} still allocated\n",
                                format_bytes(pool.live_bytes),
                                format_counted(pool.live_blocks, "block is", "blocks are"));
        }
    }
    return text.empty() ? "" : terminal.styled(Style::kBold, "Pools of the program") + "\n" + text;
}

}  // namespace fragtrace::analyzer
