// What `fragtrace doctor` found out about one thing.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fragtrace::launcher {

enum class State { kOk, kNote, kProblem };  // kProblem: something will not be recorded

struct Finding {
    State state;
    const char* topic;   // the same word in each output, such as "driver"
    std::string text;    // what is there, and what it means for a recording
    std::string advice;  // what to do; empty = nothing
};

using Findings = std::vector<Finding>;

inline void add_finding(
    Findings* all, State state, const char* topic, std::string text, std::string advice = "") {
    all->push_back({state, topic, std::move(text), std::move(advice)});
}

}  // namespace fragtrace::launcher
