// Plays scripts (script.h) with the simulated allocator and prints what real_allocator.cpp prints.
//
//     simulated_allocator RELEASE
#include "analyzer/pools/pytorch/pytorch_pool.h"
#include "script.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <set>

namespace {

using namespace fragtrace::analyzer;

void print_one(const char* name, const char* kind, const PytorchStatistic& one) {
    std::printf("%s.%s %lld %lld %lld %lld\n",
                name,
                kind,
                static_cast<long long>(one.current),
                static_cast<long long>(one.peak),
                static_cast<long long>(one.allocated),
                static_cast<long long>(one.freed()));
}

void print_by_class(const char* name, const PytorchStatisticByClass& one) {
    print_one(name, "all", one.all);
    print_one(name, "small_pool", one.by_class[PytorchStatisticByClass::kSmall]);
    print_one(name, "large_pool", one.by_class[PytorchStatisticByClass::kLarge]);
}

void print_statistics(const PytorchStatistics& all) {
    print_by_class("allocation", all.allocation);
    print_by_class("segment", all.segment);
    print_by_class("active", all.active);
    print_by_class("inactive_split", all.inactive_split);
    print_by_class("allocated_bytes", all.allocated_bytes);
    print_by_class("reserved_bytes", all.reserved_bytes);
    print_by_class("active_bytes", all.active_bytes);
    print_by_class("inactive_split_bytes", all.inactive_split_bytes);
    print_by_class("requested_bytes", all.requested_bytes);
    print_one("oversize_allocations", "all", all.oversize_allocations);
    print_one("oversize_segments", "all", all.oversize_segments);
    const std::pair<const char*, std::uint64_t> counts[] = {
        {"num_alloc_retries", all.num_alloc_retries},
        {"num_ooms", all.num_ooms},
        {"num_sync_all_streams", all.num_sync_all_streams},
        {"num_device_alloc", all.num_device_alloc},
        {"num_device_free", all.num_device_free},
        {"num_oom_rejections", all.num_oom_rejections}};
    for (const auto& [name, count] : counts) {
        std::printf("%s %lld\n", name, static_cast<long long>(count));
    }
}

class Player {
  public:
    Player(const ScriptHead& head, const PytorchRules& rules)
        : rules_(rules), on_stream_(head.streams.size()) {
        const auto settings = parse_pytorch_config(head.config, rules);
        if (!settings) {
            std::fprintf(stderr, "%s\n", settings.error().message.c_str());
            std::exit(2);
        }
        constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;
        pool_ = std::make_unique<PytorchPool>(
            *settings,
            std::make_unique<FixedDevice>(head.total_bytes, head.capacity_bytes, kPageBytes),
            head.streams,
            rules);
        pool_->set_address_order(static_cast<AddressOrder>(head.address_order), head.seed);
        pool_->count_blocks();
        pool_->write_history(&history_);
    }

    void play(const Call& call) {
        switch (call.kind) {
            case 'a':
                allocate(call);
                break;
            case 'r':
                if (live_.contains(call.first) && live_[call.first].stream != call.second) {
                    live_[call.first].uses.insert(call.second);
                    if (capturing_) {
                        live_[call.first].captured_uses.insert(call.second);
                    }
                }
                break;
            case 'f':
                release(call.first);
                break;
            case 'w':
                complete(call.first, call.second);
                break;
            case 'e':
                pool_->empty_cache();
                record_parked();
                break;
            case 'E':
                pool_->empty_private_pool(static_cast<std::uint32_t>(call.first));
                record_parked();
                break;
            case 'm':
                pool_->set_memory_fraction(std::stod(call.text));
                break;
            case 's':
                if (!pool_->change_settings(call.text)) {
                    std::fprintf(stderr, "settings '%s' were refused\n", call.text.c_str());
                    std::exit(2);
                }
                break;
            case 'p':
                options_[call.first] = {.no_split = (call.second & 1) != 0,
                                        .use_on_oom = (call.second & 2) != 0};
                set_options(call.first);
                break;
            case 'b':
                routes_.push_back(call.first);
                update_capture();
                break;
            case 'n':
                routes_.erase(std::find(routes_.begin(), routes_.end(), call.first));
                update_capture();
                break;
            case 'd':
                options_[call.first].freeable = true;
                set_options(call.first);
                break;
            case 'c':
                capture_ = call.first != 0;
                update_capture();
                break;
            default:
                break;
        }
        for (const DriverCall& one : pool_->take_driver_calls()) {
            if (one.refused && one.kind == DriverCall::Kind::kSegmentAlloc) {
                std::printf("refused %llu\n", static_cast<unsigned long long>(one.size_bytes));
            }
        }
        print_history();
    }

    void finish() {
        const HeapSnapshot heap = pool_->snapshot();
        for (const HeapSegment& segment : heap.segments) {
            print_segment(heap, segment);
        }
        print_statistics(pool_->pytorch_statistics());
        for (const auto& [number, options] : options_) {
            const PytorchStatistic one =
                pool_->reserved_by_private_pool(static_cast<std::uint32_t>(number));
            if (one.allocated != 0) {
                print_one("private_pool", std::to_string(number).c_str(), one);
            }
        }
    }

  private:
    struct Live {
        std::uint64_t stream = 0;
        std::set<std::uint64_t> uses;
        std::set<std::uint64_t> captured_uses;  // those recorded during a capture
    };

    void allocate(const Call& call) {
        const Request request{.block = static_cast<BlockId>(call.first),
                              .requested_bytes = call.second,
                              .stream = static_cast<StreamId>(call.third),
                              .private_pool = route()};
        const Outcome outcome = pool_->allocate(request).outcome;
        if (call.second != 0) {
            record_parked();
        }
        if (outcome == Outcome::kOutOfMemory || outcome == Outcome::kRejected) {
            print_history();
            std::printf("failed a %llu out of memory\n",
                        static_cast<unsigned long long>(call.first));
        } else if (call.second != 0) {
            live_[call.first] = {call.third, {}, {}};
        }
    }

    // Among several routes the one begun last, in older releases the first.
    [[nodiscard]] std::uint32_t route() const {
        if (routes_.empty()) {
            return 0;
        }
        return static_cast<std::uint32_t>(rules_.routing_is_capture ? routes_.front()
                                                                    : routes_.back());
    }

    void release(std::uint64_t id) {
        const auto found = live_.find(id);
        if (found == live_.end()) {
            return;
        }
        std::vector<Pool::PendingOn> pending;
        for (const std::uint64_t stream : found->second.uses) {
            // Uses recorded during a capture are over when the capture ends.
            if (!capturing_ || rules_.waits_for_captured_streams ||
                !found->second.captured_uses.contains(stream)) {
                pending.push_back({next_event_++, static_cast<StreamId>(stream)});
                if (capturing_) {
                    parked_.push_back({pending.back().id, stream});
                } else {
                    on_stream_.at(stream).events.push_back(pending.back().id);
                }
            }
        }
        const bool only_waits_for_capture = pending.empty() && !found->second.uses.empty();
        if (only_waits_for_capture) {
            pending.push_back({next_event_++, static_cast<StreamId>(on_stream_.size())});
        }
        pool_->release(static_cast<BlockId>(id), pending);
        if (only_waits_for_capture) {
            pool_->complete(pending.back().id);
        }
        live_.erase(found);
    }

    // Events take their place in their streams when the allocator records them.
    void record_parked() {
        if (!capturing_) {
            for (const auto& [id, stream] : parked_) {
                on_stream_.at(stream).events.push_back(id);
            }
            parked_.clear();
        }
    }

    void complete(std::uint64_t stream, std::uint64_t keep) {
        OnStream& state = on_stream_.at(stream);
        while (state.done + keep < state.events.size()) {
            pool_->complete(state.events[state.done++]);
        }
    }

    void set_options(std::uint64_t number) {
        pool_->set_private_pool(static_cast<std::uint32_t>(number), options_[number]);
    }

    void update_capture() {
        capturing_ = capture_ || (rules_.routing_is_capture && !routes_.empty());
        pool_->set_capturing(capturing_);
    }

    void print_history() {
        static constexpr const char* kNames[] = {"alloc",
                                                 "free_requested",
                                                 "free_completed",
                                                 "segment_alloc",
                                                 "segment_free",
                                                 "segment_map",
                                                 "segment_unmap",
                                                 "oom"};
        for (const PytorchTraceEntry& entry : history_) {
            std::printf("ev %s %llx %llu\n",
                        kNames[static_cast<std::size_t>(entry.action)],
                        static_cast<unsigned long long>(entry.address),
                        static_cast<unsigned long long>(entry.size_bytes));
        }
        history_.clear();
    }

    void print_segment(const HeapSnapshot& heap, const HeapSegment& segment) const {
        std::printf("segment %llx %llu %s stream %llu pool %u",
                    static_cast<unsigned long long>(segment.address),
                    static_cast<unsigned long long>(segment.size_bytes),
                    segment.size_class == SizeClass::kLarge ? "large" : "small",
                    static_cast<unsigned long long>(segment.stream),
                    segment.private_pool);
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            std::printf(" %c%llu:%llu",
                        block.state == BlockState::kLive      ? 'A'
                        : block.state == BlockState::kPending ? 'P'
                                                              : '.',
                        static_cast<unsigned long long>(block.size_bytes),
                        static_cast<unsigned long long>(block.requested_bytes));
        }
        std::printf("\n");
    }

    struct OnStream {
        std::vector<PendingId> events;
        std::size_t done = 0;
    };

    PytorchRules rules_;
    std::unique_ptr<PytorchPool> pool_;
    std::vector<PytorchTraceEntry> history_;
    std::vector<OnStream> on_stream_;
    std::map<std::uint64_t, Live> live_;
    std::vector<std::pair<PendingId, std::uint64_t>> parked_;
    std::map<std::uint64_t, PrivatePoolOptions> options_;
    std::vector<std::uint64_t> routes_;
    bool capture_ = false;
    bool capturing_ = false;
    PendingId next_event_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
    const PytorchRules rules = PytorchRules::for_release(argc > 1 ? argv[1] : "");
    for (const AllocatorScript& script : read_scripts(std::cin)) {
        std::printf("script %s\n", script.head.name.c_str());
        Player player(script.head, rules);
        for (const Call& call : script.calls) {
            player.play(call);
        }
        player.finish();
    }
    return 0;
}
