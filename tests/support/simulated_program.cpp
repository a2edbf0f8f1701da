#include "tests/support/simulated_program.h"

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <stdexcept>

using namespace fragtrace::analyzer;

namespace fragtrace::testing {
namespace {

constexpr std::uint64_t kBase = 0x200000000000;
constexpr std::uint64_t kApart = std::uint64_t{1} << 32;  // segments' addresses

}  // namespace

SimulatedProgram::SimulatedProgram(std::uint64_t card_bytes,
                                   std::uint64_t others_bytes,
                                   const std::string& settings)
    : card_bytes_(card_bytes), streams_({{0, 0}, {0x70, 1}}) {
    auto pool = analyzer::make_pool(
        "pytorch",
        settings,
        std::make_unique<FixedDevice>(card_bytes, card_bytes - others_bytes, 2 * kMiB),
        {0, 0x70});
    if (!pool) {
        throw std::runtime_error(pool.error().message);
    }
    pool_ = std::move(pool).value();
    trace_.header.pid = 4711;
    trace_.header.start_unix_ns = 1'700'000'000'000'000'000;
    trace_.fact("command_line", "python train.py");
    trace_.fact("end.code", "0");
    trace_.fact("device.0.name", "made-up card");
    trace_.fact("torch.vtable", "verified");
    trace_.fact("torch_version", "2.15.0");
    if (!settings.empty()) {
        trace_.fact("allocator_conf", settings);
    }
}

void SimulatedProgram::at(const char* function, std::uint32_t line) {
    const auto [node, is_new] = lines_.try_emplace({function, line}, 0);
    if (is_new) {
        node->second = trace_.python_node(0, trace_.code(function, "train.py", 1), line);
    }
    trace_.set_python_stack(node->second);
}

std::map<std::uint32_t, std::uint64_t> SimulatedProgram::segments() {
    std::map<std::uint32_t, std::uint64_t> all;
    for (const HeapSegment& segment : pool_->snapshot().segments) {
        all[segment.obtained_by] = segment.size_bytes;
    }
    return all;
}

void SimulatedProgram::complete_events() {
    for (const std::uint64_t event : waiting_) {
        trace_.simple(EventKind::kEventComplete, 0, 0, event);
    }
    waiting_.clear();
}

void SimulatedProgram::record_driver_calls(std::uint64_t asked_bytes, Outcome outcome) {
    const auto now = segments();
    const bool refused = outcome == Outcome::kRetryOk || outcome == Outcome::kOutOfMemory;
    const std::uint64_t driver_bytes = pool_->driver_bytes(asked_bytes);
    if (refused) {
        trace_.simple(EventKind::kAllocRefused, 0, driver_bytes, 2, true);
        complete_events();
    }
    for (const auto& [number, bytes] : known_) {
        if (!now.contains(number)) {
            trace_.device_free(kBase + number * kApart, true);
            reserved_ -= bytes;
        }
    }
    if (outcome == Outcome::kOutOfMemory) {
        trace_.simple(EventKind::kAllocRefused, 0, driver_bytes, 2, true);
    }
    for (const auto& [number, bytes] : now) {
        if (!known_.contains(number)) {
            trace_.device_alloc(kBase + number * kApart, bytes, true);
            reserved_ += bytes;
            if (!sampled_) {  // the recorder's own query, after the first segment
                sampled_ = true;
                EventRecord sample = {};
                sample.kind = EventKind::kMemoryInfo;
                sample.flags = kFlagByPool;
                sample.size = pool_->device().free_bytes() + unseen_bytes_;
                sample.extra = card_bytes_;
                trace_.event(sample);
            }
        }
    }
    known_ = now;
}

std::uint32_t SimulatedProgram::alloc(std::uint64_t bytes,
                                      std::uint64_t stream,
                                      std::uint32_t private_pool) {
    const std::uint32_t block = next_block_++;
    const AllocateResult result = pool_->allocate({.block = block,
                                                   .requested_bytes = bytes,
                                                   .stream = streams_.at(stream),
                                                   .private_pool = private_pool});
    const bool failed =
        result.outcome == Outcome::kOutOfMemory || result.outcome == Outcome::kRejected;
    const std::uint64_t rounded = (bytes + 511) / 512 * 512;
    if (result.outcome == Outcome::kOutOfMemory &&
        pool_->config().find("fraction") != std::string::npos) {
        complete_events();  // stopped by its own limit: the driver was not called
    } else {
        record_driver_calls(rounded, result.outcome);
    }
    if (failed) {
        EventRecord oom = trace_.next();
        oom.kind = EventKind::kBlockOutOfMemory;
        oom.size = bytes;
        oom.extra = pool_->device().free_bytes();
        oom.stream = stream;
        oom.pool = private_pool;
        trace_.event(oom);
        return block;
    }
    const Placement& placement = result.placement;
    blocks_[block] = {kBase + placement.segment * kApart + placement.offset_bytes,
                      placement.block_bytes};
    EventRecord request = trace_.next();
    request.kind = EventKind::kBlockAlloc;
    request.address = blocks_[block].address;
    request.size = bytes;
    request.extra = placement.block_bytes;
    request.stream = stream;
    request.pool = private_pool;
    trace_.event(request);
    return block;
}

void SimulatedProgram::free(std::uint32_t block, std::uint64_t used_by) {
    const auto found = blocks_.find(block);
    if (found == blocks_.end()) {
        return;  // its request failed
    }
    const Block gone = found->second;
    trace_.block_free(gone.address, gone.bytes, used_by != 0);
    std::vector<Pool::PendingOn> pending;
    if (used_by != 0) {
        const std::uint64_t event = next_event_++;
        EventRecord waits = {};
        waits.kind = EventKind::kPendingEvent;
        waits.address = gone.address;
        waits.extra = event;
        waits.stream = used_by;
        trace_.event(waits);
        pending.push_back({event, streams_.at(used_by)});
        waiting_.push_back(event);
    }
    pool_->release(block, pending);
    blocks_.erase(found);
}

void SimulatedProgram::refuse_library(std::uint64_t bytes) {
    trace_.simple(EventKind::kAllocRefused, 0, bytes, 2, false);
}

void SimulatedProgram::make_pool(std::uint32_t number) {
    pool_->set_private_pool(number, {});
    trace_.fact("pool." + std::to_string(number), "pytorch 0," + std::to_string(number));
    EventRecord use = trace_.next();
    use.kind = EventKind::kPoolUse;
    use.size = 1;
    use.pool = number;
    trace_.event(use);
}

void SimulatedProgram::begin_phase(const std::string& name) {
    const auto text =
        texts_.try_emplace(name, static_cast<std::uint32_t>(texts_.size() + 1)).first->second;
    trace_.fact("text." + std::to_string(text), name);
    trace_.simple(EventKind::kRangeBegin, 0, text, static_cast<std::uint64_t>(RangeKind::kApi));
}

void SimulatedProgram::end_phase() {
    trace_.simple(EventKind::kRangeEnd, 0, 0, static_cast<std::uint64_t>(RangeKind::kApi));
}

void SimulatedProgram::save(const std::string& path) {
    trace_.end(EndReason::kNormal);
    trace_.footer();
    trace_.save(path);
}

}  // namespace fragtrace::testing
