#include "analyzer/analysis/job/shared_cards.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// What uses one card: indices of processes, and into their devices or contexts.
struct OnCard {
    std::vector<std::pair<std::size_t, std::size_t>> devices;
    std::vector<std::pair<std::size_t, std::size_t>> contexts;

    // The programs of one process count once.
    [[nodiscard]] std::size_t processes(const Job& job) const {
        std::set<std::pair<ProcessKey, std::size_t>> all;
        for (const auto* places : {&devices, &contexts}) {
            for (const auto& [at, part] : *places) {
                const JobPlace& place = job.at(at).place;
                all.emplace(place.key_of(place.process), place.process.start_ticks == 0 ? at : 0);
            }
        }
        return all.size();
    }
};

// The cards of the job, with their users from outside.
std::map<CardKey, OnCard> used_cards(const Job& job) {
    std::map<CardKey, OnCard> cards;
    for (std::size_t i = 0; i < job.with_outside(); ++i) {
        const ProcessSummary& process = job.at(i);
        if (!may_share(process)) {
            continue;
        }
        for (std::size_t d = 0; d < process.devices.size(); ++d) {
            if (!process.devices[d].uuid.empty()) {
                cards[card_key(process, process.devices[d].uuid)].devices.emplace_back(i, d);
            }
        }
        for (std::size_t c = 0; c < process.contexts.size(); ++c) {
            if (takes_card(process, process.contexts[c])) {
                cards[card_key(process, process.contexts[c].uuid)].contexts.emplace_back(i, c);
            }
        }
    }
    const auto is_outside = [&job](const auto& place) {
        return place.first >= job.processes.size();
    };
    std::erase_if(cards, [&](const auto& card) {
        const OnCard& on = card.second;
        return std::all_of(on.devices.begin(), on.devices.end(), is_outside) &&
               std::all_of(on.contexts.begin(), on.contexts.end(), is_outside);
    });
    return cards;
}

// Whether the process had ended by then, as its parent or its next program saw. After an exit it
// may still hold its memory for a while.
bool had_ended(const ProcessSummary& process, std::uint64_t at_unix_ns) {
    constexpr std::uint64_t kWhileNs = 1'000'000'000;
    const std::uint64_t since_start = at_unix_ns - std::min(at_unix_ns, process.start_unix_ns);
    const auto seen_ns = process.replaced_ns ? process.replaced_ns : process.killed.seen_ns;
    return seen_ns ? *seen_ns <= since_start
                   : process.end_ns && *process.end_ns + kWhileNs <= since_start;
}

std::uint64_t silent_ns(const ProcessSummary& process, std::uint64_t at_unix_ns) {
    return process.ended_at() >= at_unix_ns
               ? 0
               : at_unix_ns - process.start_unix_ns - process.last_event_ns;
}

const std::vector<std::uint16_t>& bins_of(const ProcessDevice& device) {
    return device.curve.reserved.empty() ? device.curve.allocated : device.curve.reserved;
}

// The most that a device had reserved in one group of `together` bins.
std::uint64_t most_in_group(const ProcessDevice& device, std::size_t first, std::size_t together) {
    const std::vector<std::uint16_t>& bins = bins_of(device);
    const auto begin = bins.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(together, bins.size() - first));
    return *std::max_element(begin, end) * device.curve.unit_bytes;
}

// The most that a device had reserved in the group of bins with this time, which is of its own
// clock. Without bins, its peak.
std::uint64_t reserved_at(const ProcessDevice& device,
                          std::uint64_t time_ns,
                          std::size_t together) {
    const std::vector<std::uint16_t>& bins = bins_of(device);
    if (device.curve.bin_ns == 0 || bins.empty()) {
        return peak_of(device);
    }
    const std::uint64_t bin =
        std::min<std::uint64_t>(time_ns / device.curve.bin_ns, bins.size() - 1);
    return most_in_group(device, bin - bin % together, together);
}

std::vector<CardUser> users_at(const Job& job,
                               const OnCard& card,
                               std::uint64_t at_unix_ns,
                               std::size_t together) {
    std::vector<CardUser> users;
    for (const auto& [process_at, device_at] : card.devices) {
        const ProcessSummary& process = job.at(process_at);
        if (at_unix_ns < process.start_unix_ns || had_ended(process, at_unix_ns)) {
            continue;
        }
        const std::uint64_t bytes =
            reserved_at(process.devices[device_at], at_unix_ns - process.start_unix_ns, together);
        if (bytes != 0) {
            users.push_back({.process = process_at,
                             .device = device_at,
                             .bytes = bytes,
                             .after_last_event_ns = silent_ns(process, at_unix_ns)});
        }
    }
    std::stable_sort(users.begin(), users.end(), [](const CardUser& a, const CardUser& b) {
        return a.bytes > b.bytes;
    });
    return users;
}

std::vector<CardContext> contexts_at(const Job& job, const OnCard& card, std::uint64_t at_unix_ns) {
    std::vector<CardContext> contexts;
    std::set<std::size_t> asked;  // processes that requested memory of the card
    for (const auto& [process_at, device_at] : card.devices) {
        asked.insert(process_at);
    }
    for (const auto& [process_at, context_at] : card.contexts) {
        const ProcessSummary& process = job.at(process_at);
        const ProcessContext& context = process.contexts[context_at];
        const bool begun = at_unix_ns >= process.start_unix_ns &&
                           at_unix_ns - process.start_unix_ns >= context.begin_ns;
        const bool over =
            begun && ((context.end_ns && at_unix_ns - process.start_unix_ns >= *context.end_ns) ||
                      had_ended(process, at_unix_ns));
        if (begun && !over) {
            contexts.push_back({.process = process_at,
                                .context = context_at,
                                .after_last_event_ns = silent_ns(process, at_unix_ns),
                                .nothing_else = !asked.contains(process_at) &&
                                                process.events_lost == 0 && !process.damaged});
        }
    }
    return contexts;
}

// How many bins count as one, so that the steps of all processes of a card are few.
std::size_t bins_together(const Job& job, const OnCard& card) {
    constexpr std::size_t kMostSteps = 131072;
    std::size_t steps = 0;
    for (const auto& [process_at, device_at] : card.devices) {
        steps += bins_of(job.at(process_at).devices[device_at]).size();
    }
    return steps / kMostSteps + 1;
}

// When the sum over all processes is largest. Each process counts with the most that it had in a
// group of bins, from the beginning of that group on. So no sum at any time is larger.
std::uint64_t time_of_most(const Job& job, const OnCard& card, std::size_t together) {
    struct Step {
        std::uint64_t at_unix_ns;
        std::uint64_t change;  // modulo 2^64
    };

    std::vector<Step> steps;
    for (const auto& [process_at, device_at] : card.devices) {
        const ProcessSummary& process = job.at(process_at);
        const ProcessDevice& device = process.devices[device_at];
        const std::size_t bins = device.curve.bin_ns == 0 ? 0 : bins_of(device).size();
        std::uint64_t at = process.start_unix_ns;
        std::uint64_t bytes = bins == 0 ? peak_of(device) : 0;
        steps.push_back({at, bytes});
        for (std::size_t bin = 0; bin < bins; bin += together) {
            const std::uint64_t now = most_in_group(device, bin, together);
            if (now != bytes) {
                at = process.start_unix_ns + bin * device.curve.bin_ns;
                steps.push_back({at, now - bytes});
                bytes = now;
            }
        }
        if (const auto ended_by = process.ended_by()) {
            steps.push_back({std::max(at, *ended_by), 0 - bytes});
        }
    }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
        return a.at_unix_ns < b.at_unix_ns;
    });
    std::uint64_t sum = 0;
    std::uint64_t most = 0;
    std::uint64_t at_unix_ns = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        sum += steps[i].change;
        const bool last = i + 1 == steps.size() || steps[i + 1].at_unix_ns != steps[i].at_unix_ns;
        if (last && (at_unix_ns == 0 || sum > most)) {
            most = sum;
            at_unix_ns = steps[i].at_unix_ns;
        }
    }
    return at_unix_ns;
}

std::uint64_t time_of_last_context(const Job& job, const OnCard& card) {
    std::uint64_t last = 0;
    for (const auto& [process_at, context_at] : card.contexts) {
        const ProcessSummary& process = job.at(process_at);
        last = std::max(last, process.start_unix_ns + process.contexts[context_at].begin_ns);
    }
    return last;
}

// The first out-of-memory on the card that a program did not get past, otherwise the first;
// nullopt: none.
std::optional<std::uint64_t> first_failure_on(const Job& job, const OnCard& on, SharedCard* card) {
    std::optional<std::pair<bool, std::uint64_t>> failure;  // got past it, time
    for (const auto& [process_at, device_at] : on.devices) {
        if (process_at >= job.processes.size()) {
            continue;
        }
        const ProcessSummary& process = job.processes[process_at];
        const ProcessDevice& device = process.devices[device_at];
        const auto at_ns = process.fatal_oom() ? (device.final_oom_ns ? device.final_oom_ns
                                                                      : device.near_end_oom_ns)
                                               : device.first_oom_ns;
        if (!at_ns) {
            continue;
        }
        const std::pair at(!process.fatal_oom(), process.start_unix_ns + *at_ns);
        if (!failure || at < *failure) {
            failure = at;
            card->failed = {.process = process_at, .device = device_at};
        }
    }
    return failure ? std::optional(failure->second) : std::nullopt;
}

}  // namespace

std::vector<CardContext> SharedCard::only_contexts() const {
    std::set<std::size_t> others;
    for (const CardUser& user : users) {
        others.insert(user.process);
    }
    std::vector<CardContext> only;
    for (const CardContext& context : contexts) {
        if (!others.contains(context.process)) {
            only.push_back(context);
        }
    }
    return only;
}

CardKey card_key(const ProcessSummary& process, const std::string& uuid) {
    return {process.place.machine(), uuid, process.card_set};
}

bool takes_card(const ProcessSummary& process, const ProcessContext& context) {
    return !context.uuid.empty() && (context.bytes != 0 || process.card_set.empty());
}

bool may_share(const ProcessSummary& process) {
    return process.card_set != "-" && process.start_unix_ns != 0;
}

std::set<CardKey> cards_of(const ProcessSummary& process) {
    std::set<CardKey> cards;
    if (!may_share(process)) {
        return cards;
    }
    for (const ProcessDevice& device : process.devices) {
        if (!device.uuid.empty()) {
            cards.insert(card_key(process, device.uuid));
        }
    }
    for (const ProcessContext& context : process.contexts) {
        if (takes_card(process, context)) {
            cards.insert(card_key(process, context.uuid));
        }
    }
    return cards;
}

bool has_shared_card(const Job& job) {
    const auto cards = used_cards(job);
    return std::any_of(cards.begin(), cards.end(), [&job](const auto& card) {
        std::set<std::pair<std::uint64_t, std::size_t>> begins;
        for (const auto& [process_at, device_at] : card.second.devices) {
            begins.emplace(job.at(process_at).start_unix_ns, process_at);
        }
        std::uint64_t end = 0;  // of those before
        return std::any_of(begins.begin(), begins.end(), [&](const auto& begin) {
            const bool meets = begin.first < end;
            end = std::max(end, job.at(begin.second).ended_at());
            return meets;
        });
    });
}

std::vector<SharedCard> shared_cards(const Job& job) {
    std::vector<SharedCard> shared;
    for (const auto& [key, on] : used_cards(job)) {
        if (on.processes(job) < 2) {
            continue;
        }
        SharedCard& card = shared.emplace_back();
        card.uuid = key[1];
        card.at_most = true;
        const auto failure = first_failure_on(job, on, &card);
        const std::size_t together = failure ? 1 : bins_together(job, on);
        card.at_failure = failure.has_value();
        card.at_unix_ns = failure              ? *failure
                          : on.devices.empty() ? time_of_last_context(job, on)
                                               : time_of_most(job, on, together);
        card.users = users_at(job, on, card.at_unix_ns, together);
        card.contexts = contexts_at(job, on, card.at_unix_ns);
        for (const auto& [process_at, device_at] : on.devices) {
            const ProcessSummary& process = job.at(process_at);
            card.total_bytes = std::max(card.total_bytes, process.devices[device_at].total_bytes);
            card.at_most = card.at_most && process.events_lost == 0 && !process.damaged;
            card.host = card.host.empty() ? process.place.host : card.host;
        }
        for (const CardUser& user : card.users) {
            card.sum_bytes += user.bytes;
        }
        const std::size_t holders = card.users.size() + card.only_contexts().size();
        const auto is_inside = [&job](const auto& user) {
            return user.process < job.processes.size();
        };
        const bool of_others = !card.at_failure &&
                               std::none_of(card.users.begin(), card.users.end(), is_inside) &&
                               std::none_of(card.contexts.begin(), card.contexts.end(), is_inside);
        const bool only_the_failed =
            !card.users.empty() && card.users.front().process == card.failed.process;
        if (of_others || holders == 0 || (holders == 1 && (!card.at_failure || only_the_failed))) {
            shared.pop_back();
        }
    }
    return shared;
}

}  // namespace fragtrace::analyzer
