#include "analyzer/analysis/job/job_view.h"

#include "analyzer/analysis/job/first_failure.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace fragtrace::analyzer {

JobView view_of(const Job& job) {
    JobView view;
    for (const ProcessSummary& process : job.processes) {
        if (process.start_unix_ns != 0) {
            view.start_unix_ns = view.start_unix_ns == 0
                                     ? process.start_unix_ns
                                     : std::min(view.start_unix_ns, process.start_unix_ns);
        }
    }
    view.generations = generation_ends(job);
    view.groups = groups_of(job, &view.not_compared);
    for (std::size_t i = 0; i < view.groups.size(); ++i) {
        if (const auto from = compared_with(job, view.groups, i)) {
            view.differences.push_back(difference_of(job, view.groups, i, *from));
        }
    }
    // The failed ones come first, then the ranks, then the smallest groups.
    std::set<std::size_t> first_failed;
    for (const GenerationEnd& generation : view.generations) {
        if (generation.first) {
            first_failed.insert(generation.first->process);
            first_failed.insert(generation.first->later_oom.value_or(generation.first->process));
        }
    }
    std::vector<std::tuple<bool, bool, std::size_t>> order;  // of each group
    for (const ProcessGroup& group : view.groups) {
        const bool has_failed =
            std::any_of(group.members.begin(), group.members.end(), [&](std::size_t member) {
                return first_failed.contains(member);
            });
        order.emplace_back(
            !has_failed, job.processes[group.front()].place.rank < 0, group.members.size());
    }
    std::stable_sort(view.differences.begin(),
                     view.differences.end(),
                     [&order](const GroupDifference& a, const GroupDifference& b) {
                         return order[a.group] < order[b.group];
                     });
    const Replayed replayed = replayed_of(job, view.groups, view.not_compared.empty());
    view.settings_replayed = !replayed.processes.empty();
    view.shares = unequal_shares(job);
    view.card = common_card(job, replayed);
    view.needed = needed_memory(job);
    view.setting = common_setting(job, replayed);
    view.shared = shared_cards(job);
    return view;
}

std::vector<std::size_t> representatives(const Job& job, std::size_t most) {
    std::vector<std::size_t> chosen;
    const auto choose = [&](std::size_t at) {
        const bool is_new = std::find(chosen.begin(), chosen.end(), at) == chosen.end();
        if (is_new && chosen.size() < most && !job.processes[at].path.empty() &&
            !job.processes[at].replayed) {
            chosen.push_back(at);
        }
    };
    const auto failure = first_failure(job);
    if (failure) {
        choose(failure->process);
    }
    for (const FirstFailure& of_generation : first_failures(job)) {
        if (of_generation.out_of_memory || of_generation.later_oom) {
            choose(of_generation.later_oom.value_or(of_generation.process));
        }
    }
    std::vector<std::size_t> rest;
    for (const ProcessGroup& group : groups_of(job, &rest)) {
        const bool known = std::any_of(group.members.begin(), group.members.end(), [&](auto at) {
            return job.processes[at].replayed ||
                   std::find(chosen.begin(), chosen.end(), at) != chosen.end();
        });
        const auto at_hand = std::find_if(group.members.begin(), group.members.end(), [&](auto at) {
            return !job.processes[at].path.empty() && !job.processes[at].devices.empty();
        });
        if (!known && at_hand != group.members.end()) {
            choose(*at_hand);
        }
    }
    return chosen;
}

}  // namespace fragtrace::analyzer
