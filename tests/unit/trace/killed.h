// A killed process: its trace, and the ring that it left.
#pragma once

#include "analyzer/trace/reader.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <cstring>

namespace fragtrace::testing {

inline constexpr std::uint32_t kSlots = 64;

// A run of 100 events. The file has the first `in_file` events. Stacks of the later ones are only
// in the ring.
struct Killed {
    TemporaryFolder folder;
    TraceWriter trace;
    std::string path = folder.file("t.ftrace");
    std::string ring_path = folder.file("t.ring");

    explicit Killed(std::uint64_t in_file) {
        std::strncpy(trace.header.ring_path, ring_path.c_str(), sizeof trace.header.ring_path - 1);
        for (std::uint64_t i = 1; i <= 100; ++i) {
            if (i == in_file + 1) {
                trace.flush();
                file = trace.bytes();
            }
            const auto code = trace.code("function" + std::to_string(i), "file.py", 1);
            trace.set_python_stack(trace.python_node(0, code, static_cast<std::uint32_t>(i)));
            trace.device_alloc(0x1000 * i, 512, false);
        }
    }

    void save(std::uint64_t tail, const std::vector<std::uint64_t>& unfinished = {}) {
        write_file(path, file);
        write_file(ring_path, trace.ring(tail, kSlots, unfinished));
    }

    analyzer::Timeline read(const analyzer::ReadOptions& options = {.absorb_ring = true}) const {
        auto result = analyzer::read_trace(path, options);
        REQUIRE(result.ok());
        return std::move(result).value();
    }

    std::string file;
};

inline void check_complete(const analyzer::Timeline& timeline,
                           const std::vector<std::uint64_t>& missing = {}) {
    REQUIRE(timeline.events.size() == 100 - missing.size());
    std::uint64_t expected = 1;
    for (const analyzer::Event& event : timeline.events) {
        while (std::find(missing.begin(), missing.end(), expected) != missing.end()) {
            ++expected;
        }
        REQUIRE(event.address == 0x1000 * expected);
        const analyzer::Origin& origin = timeline.origins.at(event.origin);
        const StackNode& node = timeline.nodes.at(origin.python_stack);
        REQUIRE(node.line == expected);
        REQUIRE(timeline.codes.at(python_code_id(node.frame)).function ==
                "function" + std::to_string(expected));
        ++expected;
    }
}

}  // namespace fragtrace::testing
