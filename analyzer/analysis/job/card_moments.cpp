#include "analyzer/analysis/job/card_moments.h"

#include "analyzer/analysis/metrics/memory_at.h"
#include "analyzer/analysis/metrics/other_processes.h"
#include "analyzer/support/guarded.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostCards = 4;
constexpr std::size_t kMostUsers = 8;
constexpr std::size_t kLinesOfMoment = 3;
constexpr std::size_t kPhaseWidth = 100;
constexpr std::uint64_t kMostEvents = 20'000'000;

UserMoment moment_of(MemoryAt* found, DeviceId device) {
    UserMoment moment{.phase = summary_word(found->phase, kPhaseWidth),
                      .has_phases = found->has_phases,
                      .idle_ns = found->idle_ns,
                      .recording_stopped = found->recording_stopped,
                      .complete = found->complete};
    Symbolizer symbols(found->tables);
    for (const DeviceAt& at : found->devices) {
        if (at.device == device) {
            moment.bytes = at.totals.own;
            moment.allocated_bytes = at.totals.allocated;
            moment.lines = lines_of(at.holders, &symbols);
            moment.lines.resize(std::min(moment.lines.size(), kLinesOfMoment));
        }
    }
    return moment;
}

// Reads one trace. For the process that ran out of memory, `listed` gets what the driver's library
// said about the card then.
void look_at(const Job& job,
             const SharedCard& card,
             CardUser* user,
             std::optional<OtherProcesses>* listed) {
    const ProcessSummary& process = job.at(user->process);
    const ProcessDevice& device = process.devices[user->device];
    if (process.path.empty() || !process.import.empty() || !process.other_files.empty() ||
        process.events > kMostEvents || card.at_unix_ns < process.start_unix_ns) {
        return;
    }
    auto found = guarded(process.path, [&] {
        return memory_at(process.path, card.at_unix_ns - process.start_unix_ns);
    });
    if (!found) {
        return;
    }
    user->moment = moment_of(&*found, device.device);
    user->bytes = user->moment->bytes;
    if (card.failed.process == user->process) {
        for (const OtherProcesses& others : other_processes(found->tables, device.device)) {
            if (others.lists_self && others.sequence <= found->sequence) {
                *listed = others;
            }
        }
    }
}

// A process whose last event is earlier may have ended. The driver's list tells, but only of
// processes whose ids are those of the failed process's container.
template <typename User>
void drop_ended(const Job& job,
                std::size_t failed,
                const OtherProcesses& listed,
                std::vector<User>* users) {
    std::erase_if(*users, [&](User& user) {
        if (!job.at(user.process).place.same_process_ids(job.at(failed).place)) {
            return false;
        }
        const std::uint32_t pid = job.at(user.process).pid;
        const bool on_card = std::any_of(listed.each.begin(),
                                         listed.each.end(),
                                         [pid](const OtherProcess& one) { return one.pid == pid; });
        const bool silent = user.after_last_event_ns != 0;
        user.after_last_event_ns = on_card ? 0 : user.after_last_event_ns;
        return silent && !on_card;
    });
}

bool is_whole(const CardUser& user) {
    return user.moment && user.moment->complete && !user.moment->recording_stopped;
}

// A process with nothing in its pool may hold other memory: its trace tells.
void add_candidates(const Job& job, SharedCard* card) {
    for (const CardContext& context : card->only_contexts()) {
        const ProcessSummary& process = job.at(context.process);
        for (std::size_t d = 0; d < process.devices.size(); ++d) {
            if (process.devices[d].device == process.contexts[context.context].device) {
                card->users.push_back({.process = context.process,
                                       .device = d,
                                       .after_last_event_ns = context.after_last_event_ns});
            }
        }
    }
}

// Removes users that hold nothing. Their contexts stay.
void drop_empty(SharedCard* card) {
    for (const CardUser& user : card->users) {
        if (user.bytes != 0 || !is_whole(user)) {
            continue;
        }
        for (CardContext& context : card->contexts) {
            context.nothing_else = context.nothing_else || context.process == user.process;
        }
    }
    std::erase_if(card->users, [](const CardUser& user) { return user.bytes == 0; });
}

// Whether nobody but the process that ran out of memory held something.
bool has_one_holder(const SharedCard& card) {
    const auto is_the_failed = [&card](const auto& user) {
        return user.process == card.failed.process;
    };
    const std::vector<CardContext> contexts = card.only_contexts();
    return card.at_failure && std::all_of(card.users.begin(), card.users.end(), is_the_failed) &&
           std::all_of(contexts.begin(), contexts.end(), is_the_failed);
}

}  // namespace

void add_moments(const Job& job, JobView* view) {
    for (std::size_t i = 0; i < std::min(view->shared.size(), kMostCards); ++i) {
        SharedCard& card = view->shared[i];
        // The sum of the highest values within a part of the time is an upper bound. No moment is
        // known at which the processes held most.
        if (!card.at_failure) {
            continue;
        }
        std::optional<OtherProcesses> listed;
        add_candidates(job, &card);
        for (std::size_t at = 0; at < std::min(card.users.size(), kMostUsers); ++at) {
            look_at(job, card, &card.users[at], &listed);
        }
        if (!listed) {  // it may have held nothing, and is then no user
            CardUser failed = card.failed;
            look_at(job, card, &failed, &listed);
        }
        if (listed) {
            drop_ended(job, card.failed.process, *listed, &card.users);
            drop_ended(job, card.failed.process, *listed, &card.contexts);
        }
        card.exact = !card.users.empty();
        for (const CardUser& user : card.users) {
            card.exact = card.exact && is_whole(user) && user.after_last_event_ns == 0;
            card.at_most = card.at_most && (!user.moment || is_whole(user));
        }
        drop_empty(&card);
        std::stable_sort(card.users.begin(),
                         card.users.end(),
                         [](const CardUser& a, const CardUser& b) { return a.bytes > b.bytes; });
        card.sum_bytes = 0;
        for (const CardUser& user : card.users) {
            card.sum_bytes += user.bytes;
        }
    }
    std::erase_if(view->shared, has_one_holder);
}

}  // namespace fragtrace::analyzer
