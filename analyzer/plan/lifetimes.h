// Buffers with known lifetimes and sizes, to be placed in one address range. This is the problem
// that planned placement solves (offline dynamic storage allocation).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// A buffer that is live in [begin, end). Only the order of the times matters. A buffer with begin
// >= end or with size 0 is ignored and gets offset 0.
struct Lifetime {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t size_bytes = 0;
};

// Begins and ends of buffers in order of time. At the same time, ends come before begins.
struct Turn {
    std::uint32_t buffer = 0;
    bool begins = false;
};

std::vector<Turn> turns_of(std::span<const Lifetime> lifetimes);

// The maximum of bytes that are live at the same time. No placement can be lower.
std::uint64_t load_bytes(std::span<const Lifetime> lifetimes, std::span<const Turn> turns);
std::uint64_t load_bytes(std::span<const Lifetime> lifetimes);

// The highest end of all placed buffers, in bytes.
std::uint64_t height_bytes(std::span<const Lifetime> lifetimes,
                           const std::vector<std::uint64_t>& offsets);

// Lists of the buffers that are live at the same time as a given buffer. Not available if there are
// more than `max_pairs` pairs.
class Overlaps {
  public:
    // Returns false and leaves the lists empty if there are too many pairs.
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

// A range of maximal moments. A moment is maximal if no other moment has a superset of its live
// buffers. Maximal moments are numbered in order of time. Two buffers are live at the same time if
// and only if they share such a moment.
struct Moments {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

struct MomentTable {
    std::uint32_t count = 0;
    std::vector<Moments> of;  // per buffer; empty for ignored buffers
};

MomentTable moments_of(std::span<const Lifetime> lifetimes, std::span<const Turn> turns);

}  // namespace fragtrace::analyzer
