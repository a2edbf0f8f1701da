// Shows lines on standard error while the report is being made: results that are already known.
// They are removed when the report is ready.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <cstddef>

namespace fragtrace::analyzer {

class FirstScreen {
  public:
    // The lines are shown if standard error is a terminal and the trace is long, or if `always`.
    explicit FirstScreen(bool always) : always_(always) {}

    void show(const Analysis& analysis);
    // Removes the lines if the report follows on the same terminal, because it repeats them.
    void clear();

  private:
    bool always_;
    std::size_t lines_ = 0;
};

}  // namespace fragtrace::analyzer
