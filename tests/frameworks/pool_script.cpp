// Runs a script of allocator calls through the simulated pytorch pool and prints, as JSON, what
// PyTorch prints of itself: which requests failed, every statistic, the layout of every segment.
//
// Standard input, one call per line:
//   config TEXT | card BYTES | streams HANDLE...
//   a ID BYTES STREAM POOL    f ID [STREAM...]    e    m FRACTION    d POOL
// A cross-stream event completes at once, as on the virtual GPU: the next request sees it.
#include "analyzer/pools/pytorch_pool.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace fragtrace::analyzer;

nlohmann::json statistics_json(const PytorchStatistics& all) {
    nlohmann::json json;
    const auto add = [&json](const std::string& name, const PytorchStatistic& one) {
        json[name + ".current"] = one.current;
        json[name + ".peak"] = one.peak;
        json[name + ".allocated"] = one.allocated;
        json[name + ".freed"] = one.freed();
    };
    const auto add_by_class = [&add](const std::string& name, const PytorchStatisticByClass& one) {
        add(name + ".all", one.all);
        add(name + ".small_pool", one.by_class[PytorchStatisticByClass::kSmall]);
        add(name + ".large_pool", one.by_class[PytorchStatisticByClass::kLarge]);
    };
    add_by_class("allocation", all.allocation);
    add_by_class("segment", all.segment);
    add_by_class("active", all.active);
    add_by_class("inactive_split", all.inactive_split);
    add_by_class("allocated_bytes", all.allocated_bytes);
    add_by_class("reserved_bytes", all.reserved_bytes);
    add_by_class("active_bytes", all.active_bytes);
    add_by_class("inactive_split_bytes", all.inactive_split_bytes);
    add_by_class("requested_bytes", all.requested_bytes);
    add("oversize_allocations", all.oversize_allocations);
    add("oversize_segments", all.oversize_segments);
    json["num_alloc_retries"] = all.num_alloc_retries;
    json["num_ooms"] = all.num_ooms;
    json["num_sync_all_streams"] = all.num_sync_all_streams;
    json["num_device_alloc"] = all.num_device_alloc;
    json["num_device_free"] = all.num_device_free;
    json["num_oom_rejections"] = all.num_oom_rejections;
    return json;
}

// Per segment or mapped range its blocks: [id or -1, size, requested]. Sorted: addresses are the
// driver's business.
nlohmann::json layout_json(const HeapSnapshot& heap) {
    std::vector<nlohmann::json> segments;
    for (const HeapSegment& segment : heap.segments) {
        nlohmann::json blocks = nlohmann::json::array();
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            const bool live = block.state == BlockState::kLive;
            blocks.push_back({live ? static_cast<std::int64_t>(block.allocated_by) : -1,
                              block.size_bytes,
                              live ? block.requested_bytes : 0});
        }
        segments.push_back(std::move(blocks));
    }
    std::sort(segments.begin(), segments.end());
    return segments;
}

class Runner {
  public:
    bool run(const std::string& line) {
        std::istringstream in(line);
        std::string kind;
        in >> kind;
        if (kind == "config") {
            in >> config_;
        } else if (kind == "card") {
            in >> card_bytes_;
        } else if (kind == "streams") {
            for (std::uint64_t handle = 0; in >> handle;) {
                streams_.push_back(handle);
            }
            const auto settings = parse_pytorch_config(config_);
            if (!settings) {
                std::cerr << settings.error().message << "\n";
                return false;
            }
            pool_ = std::make_unique<PytorchPool>(
                *settings,
                std::make_unique<FixedDevice>(card_bytes_, card_bytes_, 2U << 20),
                streams_);
        } else if (pool_ != nullptr) {
            call(kind, in);
        }
        return true;
    }

    [[nodiscard]] nlohmann::json result() const {
        return {{"failed", failed_},
                {"statistics", statistics_json(pool_->pytorch_statistics())},
                {"layout", layout_json(pool_->snapshot())}};
    }

  private:
    void call(const std::string& kind, std::istringstream& in) {
        if (kind == "a") {
            Request request;
            in >> request.block >> request.requested_bytes >> request.stream >>
                request.private_pool;
            const Outcome outcome = pool_->allocate(request).outcome;
            if (outcome == Outcome::kOutOfMemory || outcome == Outcome::kRejected) {
                failed_.push_back(request.block);
            }
        } else if (kind == "f") {
            BlockId block = 0;
            in >> block;
            std::vector<Pool::PendingOn> pending;
            for (StreamId stream = 0; in >> stream;) {
                pending.push_back({next_event_++, stream});
            }
            pool_->release(block, pending);
            for (const Pool::PendingOn& on : pending) {
                pool_->complete(on.id);
            }
        } else if (kind == "e") {
            pool_->empty_cache();
        } else if (kind == "m") {
            double fraction = 1;
            in >> fraction;
            pool_->set_memory_fraction(fraction);
        } else if (kind == "d") {
            std::uint32_t private_pool = 0;
            in >> private_pool;
            pool_->set_private_pool(private_pool, {.freeable = true});
            pool_->empty_private_pool(private_pool);
        }
    }

    std::string config_;
    std::uint64_t card_bytes_ = 0;
    std::vector<std::uint64_t> streams_;
    std::unique_ptr<PytorchPool> pool_;
    PendingId next_event_ = 1;
    std::vector<BlockId> failed_;
};

}  // namespace

int main() {
    Runner runner;
    for (std::string line; std::getline(std::cin, line);) {
        if (!runner.run(line)) {
            return 2;
        }
    }
    std::cout << runner.result() << "\n";
    return 0;
}
