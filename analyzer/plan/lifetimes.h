// Buffers with known lifetimes and sizes, to be placed in one address range: the problem that
// planned placement solves (dynamic storage allocation, offline).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Live in [begin, end); the times need only be ordered. A buffer with begin >= end or of no bytes
// takes part in nothing and is put at offset 0.
struct Lifetime {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t size_bytes = 0;
};

// The buffers in the order in which they come and go: ends before begins of the same time.
struct Turn {
    std::uint32_t buffer = 0;
    bool begins = false;
};

std::vector<Turn> turns_of(std::span<const Lifetime> lifetimes);

// Bytes live at once at most: no placement needs less.
std::uint64_t load_bytes(std::span<const Lifetime> lifetimes, std::span<const Turn> turns);
std::uint64_t load_bytes(std::span<const Lifetime> lifetimes);

// The highest end of any buffer.
std::uint64_t height_bytes(std::span<const Lifetime> lifetimes,
                           const std::vector<std::uint64_t>& offsets);

// Pairs of buffers that are live together, as lists of neighbours. Not there if there are more
// than `max_pairs`.
class Overlaps {
  public:
    // False: too many pairs; the lists are then empty.
    bool find(std::span<const Lifetime> lifetimes,
              std::span<const Turn> turns,
              std::size_t max_pairs);

    bool find(std::span<const Lifetime> lifetimes, std::size_t max_pairs) {
        return find(lifetimes, turns_of(lifetimes), max_pairs);
    }

    [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t buffer) const {
        return {neighbours_.data() + first_[buffer], first_[buffer + 1] - first_[buffer]};
    }

  private:
    std::vector<std::size_t> first_;
    std::vector<std::uint32_t> neighbours_;
};

// The moments that count, numbered in the order of time: at no other is a superset of their
// buffers live. Two buffers live together if they share one.
struct Moments {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

struct MomentTable {
    std::uint32_t count = 0;
    std::vector<Moments> of;  // per buffer; none for those that take part in nothing
};

MomentTable moments_of(std::span<const Lifetime> lifetimes, std::span<const Turn> turns);

}  // namespace fragtrace::analyzer
