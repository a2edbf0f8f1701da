// The sequence numbers of a trace's events, stored as runs of successive numbers, because only gaps
// interrupt them. Not thread-safe.
#pragma once

#include "analyzer/model/event.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

class SequenceNumbers {
  public:
    struct Run {
        EventIndex begin = 0;  // index of the run's first event
        std::uint64_t first = 0;
    };

    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] bool empty() const { return size_ == 0; }

    void push_back(std::uint64_t sequence) { append(sequence, 1); }

    // Appends `count` successive numbers, at least one.
    void append(std::uint64_t first, std::size_t count) {
        if (empty() || first != back() + 1) {
            runs_.push_back({static_cast<EventIndex>(size_), first});
        }
        size_ += count;
    }

    [[nodiscard]] std::uint64_t back() const {
        return runs_.back().first + (size_ - 1 - runs_.back().begin);
    }

    [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }

    // The sequence number of the last event of a run.
    [[nodiscard]] std::uint64_t last_of(std::size_t run) const {
        const std::size_t end = run + 1 < runs_.size() ? runs_[run + 1].begin : size_;
        return runs_[run].first + (end - 1 - runs_[run].begin);
    }

    // The event with this sequence number; kNoEvent if there is none. The numbers must be
    // ascending.
    [[nodiscard]] EventIndex find(std::uint64_t sequence) const {
        auto run = std::upper_bound(
            runs_.begin(), runs_.end(), sequence, [](std::uint64_t wanted, const Run& one) {
                return wanted < one.first;
            });
        if (run == runs_.begin()) {
            return kNoEvent;
        }
        --run;
        const auto at = static_cast<std::size_t>(run - runs_.begin());
        return sequence <= last_of(at)
                   ? static_cast<EventIndex>(run->begin + (sequence - run->first))
                   : kNoEvent;
    }

    // Returns the sequence number of every event.
    [[nodiscard]] std::vector<std::uint64_t> all() const {
        std::vector<std::uint64_t> numbers;
        numbers.reserve(size_);
        for (std::size_t run = 0; run < runs_.size(); ++run) {
            const std::size_t end = run + 1 < runs_.size() ? runs_[run + 1].begin : size_;
            for (std::size_t i = runs_[run].begin; i < end; ++i) {
                numbers.push_back(runs_[run].first + (i - runs_[run].begin));
            }
        }
        return numbers;
    }

  private:
    std::vector<Run> runs_;
    std::size_t size_ = 0;
};

}  // namespace fragtrace::analyzer
