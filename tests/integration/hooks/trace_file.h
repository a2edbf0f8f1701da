// The events and facts of a trace file, decoded only with codec.h, so that these tests depend only
// on the published format. Throws std::runtime_error on anything unexpected.
#pragma once

#include <fragtrace/format.h>

#include <map>
#include <string>
#include <vector>

namespace fragtrace::tests {

struct TraceContents {
    std::vector<EventRecord> events;
    std::map<std::string, std::string> facts;
    bool ended = false;

    [[nodiscard]] std::vector<EventRecord> of_kind(EventKind kind) const;
};

TraceContents read_trace(const std::string& path);

}  // namespace fragtrace::tests
