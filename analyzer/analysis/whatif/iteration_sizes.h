// Predicts sizes of requests that a step has not made yet. It uses sizes that the step has
// requested, and how both sizes were related in earlier steps.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace fragtrace::analyzer {

// Sizes of one request in earlier steps, in bytes. The first is the step whose order is followed;
// the others have different sizes. 0 = that step had no such request.
using SizesThen = std::vector<std::uint64_t>;

class IterationSizes {
  public:
    // Adds a request that the step has made.
    void know(const SizesThen& then, std::uint64_t now_bytes);

    // Adds the size of a block that stays live over the steps.
    void know_lasting(std::uint64_t size_bytes) { lasting_.insert(size_bytes); }

    // Uses the first of these rules that applies:
    // 1. the current size of known requests that had the same sizes in every earlier step;
    // 2. the old size, if it never changed and a lasting block has it;
    // 3. the old size, scaled like known requests that changed in proportion to it over the earlier
    // steps;
    // 4. the old size, if it did not change in two or more earlier steps;
    // 5. the old size times `scale`.
    [[nodiscard]] std::uint64_t of(const SizesThen& then, double scale) const;

  private:
    // Sizes relative to the first one, in units of 2^-20. Requests whose sizes change in proportion
    // have equal results.
    static SizesThen proportions(const SizesThen& then);

    // Current size: number of requests.
    std::map<SizesThen, std::map<std::uint64_t, std::uint64_t>> now_;
    // Ratio of current to old size: bytes.
    std::map<SizesThen, std::map<double, std::uint64_t>> ratios_;
    std::set<std::uint64_t> lasting_;
};

}  // namespace fragtrace::analyzer
