#include "analyzer/analysis/job/card_needs.h"

#include "analyzer/analysis/job/first_failure.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kNotKnown = ~std::uint64_t{0};

}  // namespace

bool all_recorded(const Job& job, std::optional<int> generation) {
    const auto is_whole = [generation](const ProcessSummary& process) {
        return (generation && generation_of(process) != *generation) ||
               (!process.misses_parts() && !process.end_missing() && process.events_lost == 0);
    };
    const auto has_all_ranks = [generation](const auto& one) {
        return (generation && one.first != *generation) ||
               one.second.ranks.size() >= one.second.world_size;
    };
    const auto ranks = ranks_by_generation(job);
    return job.unreadable.empty() &&
           std::all_of(job.processes.begin(), job.processes.end(), is_whole) &&
           std::all_of(ranks.begin(), ranks.end(), has_all_ranks);
}

CardContexts::CardContexts(const Job& job) {
    for (std::size_t i = 0; i < job.with_outside(); ++i) {
        const ProcessSummary& process = job.at(i);
        for (const ProcessContext& context : process.contexts) {
            if (!may_share(process) || !takes_card(process, context)) {
                continue;
            }
            cards_[card_key(process, context.uuid)].push_back(
                {.process = i,
                 .bytes = context.bytes,
                 .begin_unix_ns = process.start_unix_ns + context.begin_ns,
                 .end_unix_ns = context.end_ns ? process.start_unix_ns + *context.end_ns
                                               : process.ended_by().value_or(kNotKnown)});
        }
    }
}

std::optional<std::uint64_t> CardContexts::while_ran(const Job& job,
                                                     std::size_t process,
                                                     const ProcessDevice& device) const {
    const ProcessSummary& of = job.at(process);
    const auto card = cards_.find(card_key(of, device.uuid));
    if (device.uuid.empty() || card == cards_.end()) {
        return 0;
    }
    const std::uint64_t end_unix_ns = of.ended_by().value_or(kNotKnown);
    std::uint64_t own = device.context_bytes;
    std::uint64_t others = 0;
    bool any = false;
    for (const Context& context : card->second) {
        if (context.process == process) {
            own = std::max(own, context.bytes);
            continue;
        }
        if (context.begin_unix_ns > end_unix_ns || context.end_unix_ns < of.start_unix_ns) {
            continue;
        }
        if (context.bytes == 0) {
            return std::nullopt;
        }
        others += context.bytes;
        any = true;
    }
    return any ? own + others : 0;
}

}  // namespace fragtrace::analyzer
