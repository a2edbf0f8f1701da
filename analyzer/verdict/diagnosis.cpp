#include "analyzer/verdict/diagnosis.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// OOMs first: with a limit, retries must not crowd them out.
std::vector<Trouble> select(const std::vector<Trouble>& troubles, std::size_t limit) {
    std::vector<Trouble> chosen;
    for (const bool retries : {false, true}) {
        for (const Trouble& trouble : troubles) {
            if ((trouble.outcome == Outcome::kRetryOk) == retries && chosen.size() < limit) {
                chosen.push_back(trouble);
            }
        }
    }
    std::sort(chosen.begin(), chosen.end(), [](const Trouble& a, const Trouble& b) {
        return a.step < b.step;
    });
    return chosen;
}

void fill(Pool& state, const Request& request, std::uint64_t others_bytes, Diagnosis* diagnosis) {
    diagnosis->verdict = judge(state, request, others_bytes);
    diagnosis->heap = state.snapshot();
    diagnosis->heap.device_free_bytes = state.device().free_bytes();
    diagnosis->cheapest = find_cheapest_set(diagnosis->heap,
                                            diagnosis->verdict.rounded_bytes,
                                            state.driver_bytes(diagnosis->verdict.rounded_bytes));
    diagnosis->held_open = held_open_bytes(diagnosis->heap);
}

}  // namespace

std::vector<Diagnosis> diagnose(const ReplayScript& script,
                                const std::vector<Trouble>& troubles,
                                ReplaySetup setup,
                                std::uint64_t others_bytes,
                                std::size_t limit) {
    const std::vector<Trouble> chosen = select(troubles, limit);
    std::vector<Diagnosis> diagnoses;
    if (chosen.empty()) {
        return diagnoses;
    }
    diagnoses.reserve(chosen.size());
    const auto asked = [&script](const Trouble& trouble) {
        return request_of(script.steps[trouble.step]);
    };
    // Relaxations ask the driver for what was never recorded: there capacity decides.
    const auto by_capacity = [](Pool& pool) {
        if (auto* recorded = dynamic_cast<RecordedDevice*>(&pool.device())) {
            recorded->decide_by_capacity();
        }
    };
    std::size_t next = 0;
    ReplayHooks hooks;
    hooks.before_step = [&](std::size_t i, Pool& pool) {
        if (next < chosen.size() && chosen[next].step == i &&
            chosen[next].outcome == Outcome::kRetryOk) {
            const std::unique_ptr<Pool> before = pool.clone();
            by_capacity(*before);
            diagnoses.push_back({.trouble = chosen[next],
                                 .verdict = {},
                                 .heap = {},
                                 .cheapest = {},
                                 .held_open = {}});
            fill(*before, asked(chosen[next]), others_bytes, &diagnoses.back());
            ++next;
        }
        return next < chosen.size();
    };
    hooks.after_request = [&](std::size_t i, const AllocateResult&, Pool& pool) {
        if (next < chosen.size() && chosen[next].step == i) {
            const std::unique_ptr<Pool> after = pool.clone();
            by_capacity(*after);
            diagnoses.push_back({.trouble = chosen[next],
                                 .verdict = {},
                                 .heap = {},
                                 .cheapest = {},
                                 .held_open = {}});
            fill(*after, asked(chosen[next]), others_bytes, &diagnoses.back());
            ++next;
        }
    };
    replay(script, *setup.pool, setup.recorded, hooks);
    return diagnoses;
}

}  // namespace fragtrace::analyzer
