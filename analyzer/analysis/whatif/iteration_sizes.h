// Sizes of requests that a step has not come to yet, from the sizes that it has asked for and from
// how both went together in earlier steps.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace fragtrace::analyzer {

// Bytes of one request in earlier steps: first the step that is followed, then others of different
// sizes; 0 = that step had no such request.
using SizesThen = std::vector<std::uint64_t>;

class IterationSizes {
  public:
    // A request that the step has made.
    void know(const SizesThen& then, std::uint64_t now_bytes);

    // A block that stays over the steps.
    void know_lasting(std::uint64_t size_bytes) { lasting_.insert(size_bytes); }

    // The first of these that is known: the size now of requests that had its sizes in every
    // earlier step; its size then, if a lasting block has that; its size then, changed as requests
    // were that changed in proportion to it over the earlier steps; changed by `scale`.
    [[nodiscard]] std::uint64_t of(const SizesThen& then, double scale) const;

  private:
    // Sizes against the first, in units of 2^-20: what they have in common whose sizes go together.
    static SizesThen proportions(const SizesThen& then);

    std::map<SizesThen, std::map<std::uint64_t, std::uint64_t>> now_;  // size now: requests
    std::map<SizesThen, std::map<double, std::uint64_t>> ratios_;      // now / then: bytes
    std::set<std::uint64_t> lasting_;
};

}  // namespace fragtrace::analyzer
