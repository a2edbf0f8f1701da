// Drives any pool by short scripts: "a=1MiB b@2=512 -a" allocates a (on stream 0) and b (on stream
// 2), then releases a. "a^=1MiB" requests it from the upper end of the pool's memory.
#pragma once

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

class WorkedExample {
  public:
    explicit WorkedExample(const std::string& name,
                           const std::string& config = "",
                           std::uint64_t card_bytes = 64 * kGiB)
        : pool(make(name, config, card_bytes)) {}

    // The placement of each request: "a 0+1024" (segment + offset) or "a oom". "grow" and "retry"
    // are appended if they happened.
    std::string calls(const std::string& script) {
        std::string answers;
        std::istringstream words(script);
        for (std::string word; words >> word;) {
            if (word.front() == '-') {
                REQUIRE(pool->release(names_.at(word.substr(1)), {}));
                continue;
            }
            const std::string asked = word.substr(word.find('=') + 1);
            word.resize(word.find('='));
            const bool upper = word.back() == '^';
            word.resize(word.size() - (upper ? 1 : 0));
            const std::string name = word.substr(0, word.find('@'));
            const int stream = name == word ? 0 : std::stoi(word.substr(name.size() + 1));
            const auto bytes = parse_bytes(asked);
            REQUIRE(bytes.ok());
            names_[name] = next_;
            const AllocateResult result = pool->allocate({.block = next_++,
                                                          .requested_bytes = *bytes,
                                                          .stream = static_cast<StreamId>(stream),
                                                          .upper_end = upper});
            answers += fmt::format("{}{} ", answers.empty() ? "" : ", ", name);
            if (result.outcome == Outcome::kOutOfMemory) {
                answers += "oom";
                continue;
            }
            answers += fmt::format("{}+{}{}",
                                   result.placement.segment,
                                   result.placement.offset_bytes,
                                   result.outcome == Outcome::kGrow      ? " grow"
                                   : result.outcome == Outcome::kRetryOk ? " retry"
                                                                         : "");
        }
        return answers;
    }

    // "[a 1024][- 512]" per segment, segments separated by a space. "-" is a free block.
    [[nodiscard]] std::string layout() const {
        std::map<BlockId, std::string> by_id;
        for (const auto& [name, id] : names_) {
            by_id[id] = name;
        }
        std::string text;
        const HeapSnapshot heap = pool->snapshot();
        for (const HeapSegment& segment : heap.segments) {
            text += text.empty() ? "" : " ";
            for (std::uint32_t i = 0; i < segment.block_count; ++i) {
                const HeapBlock& block = heap.blocks[segment.first_block + i];
                text += fmt::format(
                    "[{} {}]",
                    block.state == BlockState::kFree ? "-" : by_id.at(block.allocated_by),
                    block.size_bytes);
            }
        }
        return text;
    }

    // Sizes of the segments in MiB: "2 4 16".
    [[nodiscard]] std::string segments() const {
        std::string text;
        for (const HeapSegment& segment : pool->snapshot().segments) {
            text += fmt::format(
                "{}{:g}", text.empty() ? "" : " ", static_cast<double>(segment.size_bytes) / kMiB);
        }
        return text;
    }

    std::unique_ptr<Pool> pool;

  private:
    static std::unique_ptr<Pool> make(const std::string& name,
                                      const std::string& config,
                                      std::uint64_t card_bytes) {
        auto made = make_pool(
            name, config, std::make_unique<FixedDevice>(card_bytes, card_bytes, 256), {0, 1, 2, 3});
        if (!made.ok()) {
            FAIL(made.error().message);
        }
        return std::move(made).value();
    }

    BlockId next_ = 1;
    std::map<std::string, BlockId> names_;
};

}  // namespace fragtrace::analyzer
