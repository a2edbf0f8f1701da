// Memory snapshots as torch.cuda.memory._dump_snapshot() writes them.
#include "analyzer/export/formats.h"
#include "analyzer/export/snapshot_entries.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/pools/pytorch/pytorch_config.h"
#include "analyzer/support/output_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

class SnapshotFile {
  public:
    SnapshotFile(const Analysis& analysis, std::FILE* file)
        : timeline_(analysis.timeline),
          pickle_(file),
          stacks_(&pickle_, timeline_, analysis.symbols.get()) {}

    // The histories come first, because their end is the state that follows.
    void write() {
        pickle_.begin_dict();
        const std::vector<DeviceEnd> ends = write_histories();
        begin_list(kSegments);
        for (const DeviceEnd& end : ends) {
            write_segments(end);
        }
        pickle_.end_list();
        write_devices_without_pool(ends);
        write_settings();
        write_annotations(ends.empty() ? DeviceId{0} : ends.front().device);
        write_host();
        // PyTorch does not write its release. Its rules are needed to read sizes from requests.
        if (const std::string version = timeline_.fact("torch_version"); !version.empty()) {
            key(kTorchVersion);
            stacks_.text(version);
        }
        pickle_.end_dict();
        pickle_.finish();
    }

  private:
    void key(Word word) {
        pickle_.item();
        stacks_.word(word);
    }

    void number(Word word, std::uint64_t value) {
        key(word);
        pickle_.number(value);
    }

    void word(Word name, Word value) {
        key(name);
        stacks_.word(value);
    }

    void truth(Word name, bool value) {
        key(name);
        pickle_.truth(value);
    }

    // max_split_size and the like; -1 = no limit.
    void limit(Word name, std::uint64_t value) {
        key(name);
        value == PytorchConfig::kUnlimited ? pickle_.minus_one() : pickle_.number(value);
    }

    void frames(OriginId origin) {
        key(kFrames);
        stacks_.frames(origin);
    }

    void begin_list(Word name) {
        key(name);
        pickle_.begin_list();
    }

    // One list per device, with empty ones for devices that the program did not use.
    std::vector<DeviceEnd> write_histories() {
        std::vector<DeviceEnd> ends;
        begin_list(kDeviceTraces);
        const RecordedState recorded(timeline_);
        DeviceId next = 0;
        for (const DeviceId device : recorded.devices()) {
            if (device >= kMaxDevices) {
                continue;
            }
            for (; next <= device; ++next) {
                pickle_.item();
                pickle_.begin_list();
                if (next == device) {
                    ends.push_back(SnapshotEntries(&pickle_, &stacks_, timeline_, device).write());
                }
                pickle_.end_list();
            }
        }
        pickle_.end_list();
        return ends;
    }

    // PyTorch writes no such key. fraganalyze reads a device without a pool as what it is.
    void write_devices_without_pool(const std::vector<DeviceEnd>& ends) {
        if (std::all_of(ends.begin(), ends.end(), [](const auto& end) { return end.has_pool; })) {
            return;
        }
        begin_list(kWithoutPool);
        for (const DeviceEnd& end : ends) {
            if (!end.has_pool) {
                pickle_.item();
                pickle_.number(end.device);
            }
        }
        pickle_.end_list();
    }

    void write_segments(const DeviceEnd& end) {
        for (const HeapSegment& segment : end.heap.segments) {
            std::uint64_t allocated = 0;
            std::uint64_t active = 0;
            std::uint64_t requested = 0;
            for (std::uint32_t i = 0; i < segment.block_count; ++i) {
                const HeapBlock& block = end.heap.blocks[segment.first_block + i];
                if (block.state != BlockState::kFree) {
                    allocated += block.state == BlockState::kLive ? block.size_bytes : 0;
                    active += block.size_bytes;
                    requested += known_request(block);
                }
            }
            const auto found = end.owners.find(segment.address);
            const SegmentOwner owner = found != end.owners.end() ? found->second : SegmentOwner{};
            const StreamId stream = segment.stream != kNoStream ? segment.stream : owner.stream;
            const auto pool =
                pool_id(timeline_, segment.private_pool != 0 ? segment.private_pool : owner.pool);
            pickle_.item();
            pickle_.begin_dict();
            number(kDevice, end.device);
            number(kAddress, shown_address(segment.address));
            number(kTotalSize, segment.size_bytes);
            number(kAllocatedSize, allocated);
            number(kActiveSize, active);
            number(kRequestedSize, requested);
            number(kStream, raw_stream(timeline_, stream));
            word(kSegmentType, segment.size_class == SizeClass::kSmall ? kSmallWord : kLargeWord);
            key(kSegmentPoolId);
            pickle_.pair(pool.first, pool.second);
            truth(kIsExpandable, segment.expandable);
            frames(owner.origin);
            begin_list(kBlocks);
            for (std::uint32_t i = 0; i < segment.block_count; ++i) {
                write_block(end.heap.blocks[segment.first_block + i]);
            }
            pickle_.end_list();
            pickle_.end_dict();
        }
    }

    void write_block(const HeapBlock& block) {
        const bool free = block.state == BlockState::kFree;
        pickle_.item();
        pickle_.begin_dict();
        number(kAddress, shown_address(block.address));
        number(kSize, block.size_bytes);
        number(kRequestedSize, free ? 0 : known_request(block));
        word(kState,
             free                                  ? kInactiveWord
             : block.state == BlockState::kPending ? kPendingWord
                                                   : kActiveAllocatedWord);
        frames(free || block.allocated_by >= timeline_.events.size()
                   ? 0
                   : timeline_.events[block.allocated_by].origin);
        pickle_.end_dict();
    }

    // Empty without PyTorch.
    void write_settings() {
        key(kAllocatorSettings);
        pickle_.begin_dict();
        const auto text = timeline_.facts.find("allocator_conf");
        const auto config =
            text == timeline_.facts.end()
                ? Result<PytorchConfig>(Error{ErrorCode::kInput, ""})
                : parse_pytorch_config(text->second,
                                       PytorchRules::for_release(timeline_.fact("torch_version")));
        if (text != timeline_.facts.end()) {
            key(kConf);
            stacks_.text(text->second);
        }
        if (config) {
            limit(kMaxSplitSize, config->max_split_size_bytes);
            key(kGcThreshold);
            pickle_.real(config->garbage_collection_threshold);
            truth(kExpandableSegments, config->expandable_segments);
            key(kRoundup);
            pickle_.begin_dict();
            for (std::size_t i = 0; i < config->roundup_divisions.size(); ++i) {
                pickle_.item();
                stacks_.text(std::to_string(1u << i));  // MiB
                pickle_.number(config->roundup_divisions[i]);
            }
            pickle_.end_dict();
        }
        pickle_.end_dict();
    }

    // Phases belong to threads, but an annotation has a device.
    void write_annotations(DeviceId device) {
        struct Edge {
            EventIndex event;
            std::uint32_t phase;
            bool begin;
        };

        std::vector<Edge> edges;
        const auto events = static_cast<EventIndex>(timeline_.events.size());
        for (std::uint32_t i = 0; i < timeline_.phases.size(); ++i) {
            const Phase& phase = timeline_.phases[i];
            if (phase.begin < events) {
                edges.push_back({phase.begin, i, true});
            }
            if (phase.end < events) {
                edges.push_back({phase.end, i, false});
            }
        }
        std::stable_sort(edges.begin(), edges.end(), [](const Edge& one, const Edge& other) {
            return one.event < other.event;
        });
        begin_list(kExternalAnnotations);
        for (const Edge& edge : edges) {
            pickle_.item();
            pickle_.begin_dict();
            word(kStage, edge.begin ? kStartWord : kEndWord);
            key(kName);
            stacks_.text(text_of(timeline_, timeline_.phases[edge.phase].name));
            number(kDevice, device);
            if (timeline_.start_unix_ns != 0) {
                number(kTimeUs, unix_us(timeline_, timeline_.events[edge.event].time_ns));
            }
            pickle_.end_dict();
        }
        pickle_.end_list();
    }

    // Pinned host memory: each allocation is a segment with one block.
    void write_host() {
        std::map<DeviceAddress, EventIndex> held;
        bool listed = false;  // in a checkpoint
        begin_list(kHostTraces);
        for (EventIndex i = 0; i < timeline_.events.size(); ++i) {
            const EventKind kind = timeline_.events.kind(i);
            if (kind == EventKind::kCheckpointBegin || kind == EventKind::kCheckpointEnd) {
                listed = kind == EventKind::kCheckpointBegin;
                if (listed) {
                    held.clear();
                }
            } else if (kind == EventKind::kHostAlloc || kind == EventKind::kHostFree) {
                write_host_event(i, listed, &held);
            }
        }
        pickle_.end_list();
        begin_list(kHostSegments);
        for (const auto& [address, index] : held) {
            const Event event = timeline_.events[index];
            pickle_.item();
            pickle_.begin_dict();
            key(kDevice);
            pickle_.minus_one();
            number(kAddress, address);
            number(kTotalSize, event.size_bytes);
            number(kAllocatedSize, event.size_bytes);
            number(kActiveSize, event.size_bytes);
            number(kRequestedSize, event.size_bytes);
            number(kStream, 0);
            word(kSegmentType, kLargeWord);
            frames(event.origin);
            begin_list(kBlocks);
            write_block({.address = address,
                         .size_bytes = event.size_bytes,
                         .requested_bytes = event.size_bytes,
                         .allocated_by = index,
                         .state = BlockState::kLive});
            pickle_.end_list();
            pickle_.end_dict();
        }
        pickle_.end_list();
    }

    void write_host_event(EventIndex index,
                          bool listed,
                          std::map<DeviceAddress, EventIndex>* held) {
        const Event event = timeline_.events[index];
        const bool alloc = event.kind == EventKind::kHostAlloc;
        const auto found = held->find(event.address);
        if (!alloc && found == held->end()) {
            return;
        }
        const std::uint64_t size =
            alloc ? event.size_bytes : timeline_.events[found->second].size_bytes;
        if (alloc) {
            (*held)[event.address] = index;
        } else {
            held->erase(found);
        }
        if (listed) {
            return;
        }
        pickle_.item();
        pickle_.begin_dict();
        word(kAction, alloc ? kSegmentAllocWord : kSegmentFreeWord);
        number(kAddr, event.address);
        number(kSize, size);
        number(kStream, 0);
        if (timeline_.start_unix_ns != 0) {
            number(kTimeUs, unix_us(timeline_, event.time_ns));
        }
        frames(event.origin);
        pickle_.end_dict();
    }

    const Timeline& timeline_;
    PickleWriter pickle_;
    SnapshotStackWriter stacks_;
};

}  // namespace

Status export_snapshot(const Analysis& analysis, const ExportOptions& options) {
    if (!shows_reserved(analysis.timeline.facts)) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: this {} does not show the segments that a snapshot consists "
                                 "of. Export perfetto, sqlite or csv instead.",
                                 analysis.timeline.path,
                                 analysis.timeline.fact("import"))};
    }
    return write_output(options.output, [&analysis](std::FILE* file) -> Status {
        SnapshotFile(analysis, file).write();
        return Ok{};
    });
}

}  // namespace fragtrace::analyzer
