// Drives a simulated pytorch pool in tests. Blocks have names.
#pragma once

#include "analyzer/pools/pytorch/pytorch_pool.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

inline std::uint64_t mib(double count) {
    return static_cast<std::uint64_t>(count * kMiB);
}

// A pool with its own card. Without page rounding, unless requested.
class PoolDriver {
  public:
    explicit PoolDriver(const std::string& config = "",
                        std::uint64_t capacity_bytes = 64 * kGiB,
                        std::vector<std::uint64_t> streams = {0, 1, 2, 3},
                        const PytorchRules& rules = {})
        : pool(make_settings(config, rules),
               std::make_unique<FixedDevice>(capacity_bytes, capacity_bytes, 512),
               std::move(streams),
               rules) {
        pool.count_blocks();
    }

    AllocateResult allocate(const std::string& name,
                            std::uint64_t size_bytes,
                            StreamId stream = 0,
                            std::uint32_t private_pool = 0) {
        const BlockId id = next_++;
        const AllocateResult result = pool.allocate({id, size_bytes, stream, private_pool});
        if (result.outcome != Outcome::kOutOfMemory && result.outcome != Outcome::kRejected) {
            names_[name] = id;
        }
        return result;
    }

    void release(const std::string& name, const std::vector<Pool::PendingOn>& pending = {}) {
        REQUIRE(pool.release(names_.at(name), pending));
    }

    // One text per segment or mapped range, such as "[A 1048576][- 512]". "-" is a free block, "A?"
    // a pending one.
    [[nodiscard]] std::vector<std::string> layout() const {
        std::map<BlockId, std::string> by_id;
        for (const auto& [name, id] : names_) {
            by_id[id] = name;
        }
        std::vector<std::string> lines;
        const HeapSnapshot heap = pool.snapshot();
        for (const HeapSegment& segment : heap.segments) {
            std::string line;
            for (std::uint32_t i = 0; i < segment.block_count; ++i) {
                const HeapBlock& block = heap.blocks[segment.first_block + i];
                const std::string name =
                    block.state == BlockState::kFree ? "-" : by_id.at(block.allocated_by);
                line += "[" + name + (block.state == BlockState::kPending ? "? " : " ") +
                        std::to_string(block.size_bytes) + "]";
            }
            lines.push_back(line);
        }
        return lines;
    }

    // "+size" and "-size" for segments, "map size" and "unmap size" for pages. "!" marks a refusal.
    std::vector<std::string> driver_calls() {
        std::vector<std::string> lines;
        for (const DriverCall& call : pool.take_driver_calls()) {
            const char* kind = call.kind == DriverCall::Kind::kSegmentAlloc  ? "+"
                               : call.kind == DriverCall::Kind::kSegmentFree ? "-"
                               : call.kind == DriverCall::Kind::kMap         ? "map "
                                                                             : "unmap ";
            lines.push_back(kind + std::to_string(call.size_bytes) + (call.refused ? "!" : ""));
        }
        return lines;
    }

    PytorchPool pool;

  private:
    static PytorchConfig make_settings(const std::string& config, const PytorchRules& rules) {
        const auto parsed = parse_pytorch_config(config, rules);
        REQUIRE(parsed.ok());
        return *parsed;
    }

    BlockId next_ = 100;
    std::map<std::string, BlockId> names_;
};

using Lines = std::vector<std::string>;

}  // namespace fragtrace::analyzer
