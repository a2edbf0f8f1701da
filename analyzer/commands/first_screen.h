// Lines on standard error while the report is made: what is known already. They go when it is done.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <cstddef>

namespace fragtrace::analyzer {

class FirstScreen {
  public:
    // Shown where standard error is a terminal and the trace is long, or `always`.
    explicit FirstScreen(bool always) : always_(always) {}

    void show(const Analysis& analysis);
    // Where the report follows on the same terminal, which says all of it again.
    void clear();

  private:
    bool always_;
    std::size_t lines_ = 0;
};

}  // namespace fragtrace::analyzer
