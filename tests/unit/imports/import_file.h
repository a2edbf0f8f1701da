// Writes an input of another tool and analyses it.
#pragma once

#include "analyzer/analysis/analyze.h"
#include "analyzer/snapshot/input.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

inline Result<Timeline> read_text(std::string_view content, const std::string& name = "input") {
    const testing::TemporaryFolder folder;
    testing::write_file(folder.file(name), content);
    return read_input(folder.file(name));
}

inline Timeline timeline_of(std::string_view content, const std::string& name = "input") {
    auto timeline = read_text(content, name);
    if (!timeline.ok()) {
        FAIL(timeline.error().message);
    }
    return std::move(timeline).value();
}

// The error message without the path.
inline std::string refusal_of(std::string_view content) {
    const auto timeline = read_text(content);
    if (timeline.ok()) {
        FAIL("it was read");
    }
    CHECK(timeline.error().code == ErrorCode::kInput);
    const std::string& message = timeline.error().message;
    return message.substr(message.find("input: ") + 7);
}

inline std::unique_ptr<Analysis> analysis_of(std::string_view content,
                                             const AnalyzeOptions& options = {}) {
    const testing::TemporaryFolder folder;
    testing::write_file(folder.file("input"), content);
    auto analysis = analyze(folder.file("input"), options);
    if (!analysis.ok()) {
        FAIL(analysis.error().message);
    }
    return std::move(analysis).value();
}

// Each event in a few words: "alloc 0x1000 512", "free 0x1000", "oom 512".
inline std::vector<std::string> events_of(const Timeline& timeline) {
    std::vector<std::string> words;
    for (const Event& event : timeline.events) {
        const std::string address = std::to_string(event.address);
        switch (event.kind) {
            case EventKind::kBlockAlloc:
                words.push_back("alloc " + address + " " + std::to_string(event.extra));
                break;
            case EventKind::kBlockFree:
                words.push_back("free " + address);
                break;
            case EventKind::kBlockOutOfMemory:
                words.push_back("oom " + std::to_string(event.size_bytes));
                break;
            default:
                break;
        }
    }
    return words;
}

}  // namespace fragtrace::analyzer
