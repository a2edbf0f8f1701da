// A program's run made by hand: requests with stacks, frees, phases.
#pragma once

#include "analyzer/analysis/iterations/requests.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fragtrace::testing {

class MadeUpRun {
  public:
    analyzer::Timeline timeline;

    MadeUpRun() {
        timeline.origins.emplace_back();
        timeline.nodes.push_back({});
    }

    // Adds a Python frame called by `caller` (0 = none) and returns its node.
    std::uint32_t frame(std::uint32_t caller,
                        const std::string& file,
                        const std::string& function) {
        timeline.codes.push_back({function, file, 1});
        timeline.nodes.push_back(
            {.parent = caller,
             .line = 1,
             .frame = kPythonFrame | std::uint64_t{timeline.codes.size() - 1} << 32});
        return static_cast<std::uint32_t>(timeline.nodes.size() - 1);
    }

    // Stacks that end in this frame. Each gets its own origin.
    analyzer::OriginId origin(std::uint32_t python_node) {
        timeline.origins.push_back({.thread = 1, .native_stack = 0, .python_stack = python_node});
        return static_cast<analyzer::OriginId>(timeline.origins.size() - 1);
    }

    // A stack with a single function of the program's own file.
    analyzer::OriginId line(const std::string& function) {
        return origin(frame(0, "/home/me/train.py", function));
    }

    analyzer::EventIndex alloc(analyzer::OriginId origin, std::uint64_t bytes = 512) {
        return add(EventKind::kBlockAlloc, origin, bytes);
    }

    void free(analyzer::EventIndex request) {
        const analyzer::EventIndex at = add(EventKind::kBlockFree, 0, 0);
        timeline.partner[request] = at;
        timeline.partner[at] = request;
    }

    analyzer::EventIndex fail(analyzer::OriginId origin, std::uint64_t bytes = 1 << 30) {
        return add(EventKind::kBlockOutOfMemory, origin, bytes);
    }

    void begin_phase(const std::string& name, RangeKind kind = RangeKind::kApi) {
        const auto known = texts_.try_emplace(name, static_cast<std::uint32_t>(texts_.size() + 1));
        const std::uint32_t number = known.first->second;
        timeline.facts["text." + std::to_string(number)] = name;
        const analyzer::EventIndex at = add(EventKind::kRangeBegin, 0, number);
        timeline.phases.push_back(
            {.name = number, .kind = kind, .thread = 1, .depth = 0, .begin = at, .end = at});
    }

    // Ends the phase that began last.
    void end_phase() { timeline.phases.back().end = add(EventKind::kRangeEnd, 0, 0); }

  private:
    analyzer::EventIndex add(EventKind kind, analyzer::OriginId origin, std::uint64_t bytes) {
        analyzer::Event event = {};
        event.kind = kind;
        event.origin = origin;
        event.size_bytes = bytes;
        event.extra = bytes;
        event.address = (timeline.events.size() + 1) * 512;
        event.stream = analyzer::kNoStream;
        event.time_ns = timeline.events.size() * 1000;
        timeline.events.push_back(event);
        timeline.partner.push_back(analyzer::kNoEvent);
        return static_cast<analyzer::EventIndex>(timeline.events.size() - 1);
    }

    std::map<std::string, std::uint32_t> texts_;
};

}  // namespace fragtrace::testing
