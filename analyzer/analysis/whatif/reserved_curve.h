// Reserved memory over a whole replay, in few numbers. Charts draw it over the recorded curve.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// The highest value in each of kCurvePoints equal stretches of the recorded events. A stretch
// without a request repeats the value before it.
inline constexpr std::size_t kCurvePoints = 1024;

class ReservedCurve {
  public:
    // `last_event` is the last replayed event of the recording.
    explicit ReservedCurve(std::uint64_t last_event)
        : stretch_(begin_of(1, last_event)), stretch_end_(stretch_), highest_(kCurvePoints) {}

    // Call it with ascending events, at least for each change of the value.
    void note(std::uint64_t event, std::uint64_t reserved_bytes) {
        if (event >= stretch_end_) {  // a division per request would be felt in a replay
            reach(std::min<std::uint64_t>(kCurvePoints - 1, event / stretch_));
            stretch_end_ = (point_ + 1) * stretch_;
        }
        highest_[point_] = std::max(highest_[point_], reserved_bytes);
        last_ = reserved_bytes;
    }

    [[nodiscard]] std::uint64_t last_bytes() const { return last_; }

    std::vector<std::uint64_t> take() {
        reach(kCurvePoints - 1);
        return std::move(highest_);
    }

    // The first event of a stretch.
    static std::uint64_t begin_of(std::size_t point, std::uint64_t last_event) {
        return point * ((last_event + kCurvePoints) / kCurvePoints);
    }

  private:
    void reach(std::size_t point) {
        while (point_ < point) {
            highest_[++point_] = last_;
        }
    }

    std::uint64_t stretch_;      // events
    std::uint64_t stretch_end_;  // of the present one
    std::vector<std::uint64_t> highest_;
    std::size_t point_ = 0;
    std::uint64_t last_ = 0;
};

}  // namespace fragtrace::analyzer
