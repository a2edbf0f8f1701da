#include "analyzer/plan/planner.h"

#include "analyzer/plan/greedy.h"
#include "analyzer/plan/online.h"
#include "analyzer/plan/peak_first.h"
#include "analyzer/plan/search_placer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// With more overlapping pairs than this, algorithms that visit every pair are skipped.
constexpr std::size_t kMaxPairs = 8'000'000;
constexpr std::uint64_t kStepsPerTry = 500;
constexpr std::uint64_t kMaxTries = 2000;

class Planner {
  public:
    explicit Planner(std::span<const Lifetime> lifetimes) : lifetimes_(lifetimes) {
        plan_.height_bytes = ~std::uint64_t{0};
    }

    Plan make(std::uint64_t search_work) {
        const std::vector<Turn> turns = turns_of(lifetimes_);
        plan_.load_bytes = load_bytes(lifetimes_, turns);
        if (plan_.load_bytes == 0) {
            return {.offsets = std::vector<std::uint64_t>(lifetimes_.size()),
                    .method = "nothing to place"};
        }
        offer(place_online(lifetimes_, turns, {}, &offsets_), "best fit in the order of time");
        const bool peak_helped = !done() && try_peak_first(turns);
        const bool few_pairs = !done() && overlaps_.find(lifetimes_, turns, kMaxPairs);
        if (!done() && (few_pairs || !peak_helped)) {
            try_online(turns);
        }
        if (!done() && few_pairs) {
            try_orders();
        }
        if (!done() && few_pairs) {
            search(search_work);
        }
        return std::move(plan_);
    }

  private:
    [[nodiscard]] bool done() const { return plan_.height_bytes == plan_.load_bytes; }

    // Returns true if this placement is the best so far.
    bool offer(std::uint64_t height_bytes, const char* method) {
        if (height_bytes >= plan_.height_bytes) {
            return false;
        }
        plan_.height_bytes = height_bytes;
        plan_.offsets.swap(offsets_);
        plan_.method = method;
        return true;
    }

    bool try_peak_first(const std::vector<Turn>& turns) {
        const auto height = place_peak_first(lifetimes_, turns, &offsets_, {}, plan_.height_bytes);
        return height && offer(*height, "highest moment first");
    }

    void try_online(const std::vector<Turn>& turns) {
        offer(place_online(lifetimes_, turns, {.best_fit = false}, &offsets_),
              "first fit in the order of time");
        std::vector<std::uint64_t> lives;
        for (const Lifetime& buffer : lifetimes_) {
            lives.push_back(buffer.end - buffer.begin);
        }
        std::sort(lives.begin(), lives.end());
        for (const std::size_t percent : {50, 90}) {
            if (!done()) {
                const OnlineRules rules = {.short_lived = lives[(lives.size() - 1) * percent / 100],
                                           .ceiling_bytes = plan_.load_bytes};
                offer(place_online(lifetimes_, turns, rules, &offsets_),
                      "in the order of time, short-lived buffers at the other end");
            }
        }
    }

    void try_orders() {
        GreedyPlacer placer(lifetimes_, overlaps_);
        constexpr std::array kOrders = {
            std::pair{BufferOrder::kSize, "largest first"},
            std::pair{BufferOrder::kArea, "largest bytes x lifetime first"},
            std::pair{BufferOrder::kLifetime, "longest lifetime first"},
        };
        for (const auto& [order, method] : kOrders) {
            for (const Fit fit : {Fit::kSmallestGap, Fit::kLowest}) {
                offer(placer.place(order_by(lifetimes_, order), fit, &offsets_), method);
            }
        }
    }

    // Repeats the search with a capacity below the best height so far. A buffer that found no room
    // is placed earlier in the next try. The rest of the order is random, with a fixed seed.
    void search(std::uint64_t work) {
        SearchPlacer placer(lifetimes_, overlaps_);
        const std::uint64_t tries = std::min(
            kMaxTries, work / (kStepsPerTry * std::max<std::uint64_t>(1, placer.work_per_step())));
        const std::size_t count = lifetimes_.size();
        std::vector<double> best(count);
        std::vector<double> blame(count);
        std::vector<double> key(count);
        bool found = false;
        random_.seed(1);
        for (std::uint64_t i = 0; i < tries && !done(); ++i) {
            const bool go_on = found && random_() % 4 != 0;
            const double most_blame = 1 + *std::max_element(blame.begin(), blame.end());
            for (std::size_t buffer = 0; buffer < count; ++buffer) {
                const double base = go_on ? best[buffer] : weight(lifetimes_[buffer], i % 3);
                key[buffer] = base * (1 + 20 * blame[buffer] / most_blame) * noise();
            }
            std::vector<std::uint32_t> order(count);
            std::iota(order.begin(), order.end(), 0u);
            std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
                return key[a] > key[b];
            });
            const std::uint64_t above = plan_.height_bytes - plan_.load_bytes;
            const std::uint64_t capacity = plan_.height_bytes - 1 - above / (i % 2 == 0 ? 8 : 40);
            if (placer.place(
                    std::max(capacity, plan_.load_bytes), order, kStepsPerTry, &offsets_) ==
                SearchOutcome::kFound) {
                offer(height_bytes(lifetimes_, offsets_), "search from the bottom up");
                best = key;
                found = true;
            }
            for (std::size_t buffer = 0; buffer < count; ++buffer) {
                blame[buffer] = (blame[buffer] + static_cast<double>(placer.blame()[buffer])) / 2;
            }
        }
    }

    static double weight(const Lifetime& buffer, std::uint64_t kind) {
        const auto length = static_cast<double>(buffer.end - buffer.begin);
        const auto size_bytes = static_cast<double>(buffer.size_bytes);
        return kind == 0 ? size_bytes : kind == 1 ? size_bytes * length : length;
    }

    // A random factor between 0.8 and 1.25. Standard distributions would differ between machines.
    double noise() {
        const double unit = static_cast<double>(random_()) / 4294967296.0;
        return std::exp2((2 * unit - 1) * 0.32);
    }

    std::span<const Lifetime> lifetimes_;
    Overlaps overlaps_;
    Plan plan_;
    std::vector<std::uint64_t> offsets_;
    std::mt19937 random_;
};

}  // namespace

Plan plan_placement(std::span<const Lifetime> lifetimes, std::uint64_t search_work) {
    return Planner(lifetimes).make(search_work);
}

}  // namespace fragtrace::analyzer
