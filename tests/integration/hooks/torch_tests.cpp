// The block layer of the real PyTorch: the output of tests/frameworks/torch_layers.py, PyTorch's
// own counters and the trace must agree.
#include "process.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <set>
#include <sstream>

using namespace fragtrace;
using namespace fragtrace::tests;

namespace {

// The output of the script.
struct Story {
    struct Tensor {
        uint64_t address, bytes, stream;
    };

    std::vector<Tensor> tensors;                         // by torch.empty
    std::vector<Tensor> raw;                             // by the raw interface
    std::vector<std::pair<uint64_t, uint64_t>> pending;  // address, stream
    uint64_t refused_bytes = 0;
    std::map<std::string, uint64_t> stats;
};

Story read_story(const std::string& output) {
    Story story;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string kind;
        std::string name;
        Story::Tensor tensor{};
        words >> kind;
        if (kind == "tensor" || kind == "raw") {
            words >> std::hex >> tensor.address >> std::dec >> tensor.bytes >> std::hex >>
                tensor.stream;
            (kind == "raw" ? story.raw : story.tensors).push_back(tensor);
        } else if (kind == "pending") {
            words >> std::hex >> tensor.address >> tensor.stream;
            story.pending.emplace_back(tensor.address, tensor.stream);
        } else if (kind == "oom") {
            words >> story.refused_bytes;
        } else if (kind == "stat") {
            words >> name >> story.stats[name];
        }
    }
    return story;
}

// Half-open ranges, by their begin.
using RangeMap = std::map<uint64_t, uint64_t>;

// True if [begin, end) is covered by ranges without a gap.
bool covered(const RangeMap& ranges, uint64_t begin, uint64_t end) {
    auto range = ranges.upper_bound(begin);
    while (begin < end) {
        if (range == ranges.begin()) {
            return false;
        }
        const auto holder = std::prev(range);
        if (holder->first > begin || holder->second <= begin) {
            return false;
        }
        begin = holder->second;
        range = ranges.upper_bound(begin);
    }
    return true;
}

bool overlaps(const RangeMap& ranges, uint64_t begin, uint64_t end) {
    const auto next = ranges.lower_bound(begin);
    return (next != ranges.end() && next->first < end) ||
           (next != ranges.begin() && std::prev(next)->second > begin);
}

// Replays the events in order: every block lies in mapped memory, overlaps no other block, and ends
// once. Blocks with a pending free are not reused before their events.
void check_two_layers(const TraceContents& trace) {
    RangeMap device;
    RangeMap blocks;
    std::map<uint64_t, std::pair<uint64_t, std::set<uint64_t>>> pending;  // block: end, events
    size_t wrong = 0;
    for (const EventRecord& event : trace.events) {
        switch (event.kind) {
            case EventKind::kDeviceAlloc:
            case EventKind::kMap:
                wrong += overlaps(device, event.address, event.address + event.size) ? 1 : 0;
                device[event.address] = event.address + event.size;
                break;
            case EventKind::kDeviceFree:
            case EventKind::kUnmap:
                wrong += device.erase(event.address) == 1 ? 0 : 1;
                break;
            case EventKind::kBlockAlloc: {
                const uint64_t end = event.address + event.extra;
                wrong += covered(device, event.address, end) ? 0 : 1;
                wrong += overlaps(blocks, event.address, end) ? 1 : 0;
                blocks[event.address] = end;
                break;
            }
            case EventKind::kBlockFree: {
                const auto block = blocks.find(event.address);
                if (block == blocks.end() || block->second != event.address + event.extra) {
                    ++wrong;
                } else if ((event.flags & kFlagPending) != 0) {
                    pending[event.address] = {block->second, {}};
                } else {
                    blocks.erase(block);
                }
                break;
            }
            case EventKind::kPendingEvent:
                pending[event.address].second.insert(event.extra);
                break;
            case EventKind::kEventComplete:
                for (auto block = pending.begin(); block != pending.end();) {
                    const bool was_waiting = block->second.second.erase(event.extra) != 0;
                    if (was_waiting && block->second.second.empty()) {
                        blocks.erase(block->first);
                        block = pending.erase(block);
                    } else {
                        ++block;
                    }
                }
                break;
            default:
                break;
        }
    }
    CHECK(wrong == 0);
    CHECK(blocks.empty());  // the script frees everything
    CHECK(pending.empty());
}

void check_sizes(const TraceContents& trace, const Story& story) {
    const auto blocks = trace.of_kind(EventKind::kBlockAlloc);
    uint64_t requested = 0;
    uint64_t allocated = 0;
    size_t unknown = 0;
    size_t without_python = 0;
    size_t without_native = 0;
    for (const EventRecord& block : blocks) {
        unknown += block.size == kUnknown64 || block.stream == kStreamUnknown ? 1 : 0;
        // The threads of the backward pass have no Python frames. The program's own thread always
        // has some.
        without_python += block.thread == blocks[0].thread && block.python_stack == 0 ? 1 : 0;
        without_native += block.native_stack == 0 ? 1 : 0;
        requested += block.size;
        allocated += block.extra;
    }
    CHECK(unknown == 0);
    CHECK(without_python == 0);
    CHECK(without_native == 0);
    CHECK(blocks.size() == story.stats.at("allocation.all.allocated"));
    CHECK(requested == story.stats.at("requested_bytes.all.allocated"));
    CHECK(allocated == story.stats.at("allocated_bytes.all.allocated"));
    CHECK(trace.of_kind(EventKind::kBlockFree).size() == story.stats.at("allocation.all.freed"));
}

// The tensors appear in the trace in the order in which they were made.
void check_tensors(const TraceContents& trace, const std::vector<Story::Tensor>& tensors) {
    const auto blocks = trace.of_kind(EventKind::kBlockAlloc);
    size_t position = 0;
    size_t found = 0;
    for (const Story::Tensor& tensor : tensors) {
        while (position < blocks.size() && (blocks[position].address != tensor.address ||
                                            blocks[position].size != tensor.bytes ||
                                            blocks[position].stream != tensor.stream)) {
            ++position;
        }
        found += position < blocks.size() ? 1 : 0;
        ++position;
    }
    CHECK(found == tensors.size());
}

void check_pending(const TraceContents& trace, const Story& story) {
    std::multiset<std::pair<uint64_t, uint64_t>> recorded;
    std::set<uint64_t> events;
    for (const EventRecord& event : trace.of_kind(EventKind::kPendingEvent)) {
        recorded.emplace(event.address, event.stream);
        events.insert(event.extra);
    }
    CHECK(recorded ==
          std::multiset<std::pair<uint64_t, uint64_t>>(story.pending.begin(), story.pending.end()));
    size_t pending_frees = 0;
    for (const EventRecord& event : trace.of_kind(EventKind::kBlockFree)) {
        pending_frees += (event.flags & kFlagPending) != 0 ? 1 : 0;
    }
    CHECK(pending_frees == 1);  // one block on two streams. The program's own events are not used
    const auto completed = trace.of_kind(EventKind::kEventComplete);
    CHECK(completed.size() == events.size());
    for (const EventRecord& event : completed) {
        CHECK(events.count(event.extra) == 1);
        CHECK(event.device == 0);
    }
}

void check_settings(const TraceContents& trace, const Story& story) {
    const auto failures = trace.of_kind(EventKind::kBlockOutOfMemory);
    REQUIRE(failures.size() == story.stats.at("num_ooms"));
    CHECK(failures[0].size == story.refused_bytes);
    CHECK(failures[0].extra > 0);
    CHECK(failures[0].extra < uint64_t{8} << 30);
    CHECK(trace.of_kind(EventKind::kEmptyCache).size() == 1);
    const auto fractions = trace.of_kind(EventKind::kMemoryFraction);
    REQUIRE(fractions.size() == 1);
    double fraction = 0;
    std::memcpy(&fraction, &fractions[0].size, sizeof fraction);
    CHECK(fraction == 0.75);
    CHECK(fractions[0].device == 0);
    CHECK(trace.facts.at("torch.vtable") == "verified");
    CHECK(trace.facts.at("allocator_backend") == "native");
    CHECK(trace.facts.at("torch_version").rfind("2.15.0", 0) == 0);
    CHECK(trace.facts.at("virtual") == "1");
}

Finished run_script(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {FT_PYTHON, FT_TORCH_SCRIPT};
    command.insert(command.end(), arguments.begin(), arguments.end());
    Finished finished = run(command, {.preload = {shim()}, .card = "8GiB"});
    CAPTURE(finished.output);
    REQUIRE(finished.exit_code == 0);
    return finished;
}

void check_script(const Finished& finished, const std::string& settings) {
    const Story story = read_story(finished.output);
    const TraceContents& trace = finished.trace();
    REQUIRE(story.tensors.size() > 400);
    CHECK(trace.facts.at("allocator_conf") == settings);
    check_two_layers(trace);
    check_sizes(trace, story);
    check_tensors(trace, story.tensors);
    check_tensors(trace, story.raw);
    check_pending(trace, story);
    check_settings(trace, story);
}

}  // namespace

TEST_CASE("PyTorch's blocks, segments, requests and settings are recorded", "[torch]") {
    const Finished finished = run_script({});
    check_script(finished, "");
    const TraceContents& trace = finished.trace();
    const Story story = read_story(finished.output);
    const auto segments = trace.of_kind(EventKind::kDeviceAlloc);
    uint64_t reserved = 0;
    for (const EventRecord& segment : segments) {
        reserved += segment.size;
        CHECK(segment.flags == kFlagFromAllocator);
    }
    CHECK(segments.size() == story.stats.at("segment.all.allocated"));
    CHECK(reserved == story.stats.at("reserved_bytes.all.allocated"));
    CHECK(trace.of_kind(EventKind::kDeviceFree).size() == story.stats.at("segment.all.freed"));
    const auto refused = trace.of_kind(EventKind::kAllocRefused);
    REQUIRE(!refused.empty());
    CHECK(refused[0].size >= story.refused_bytes);
    CHECK(refused[0].extra == 2);
}

TEST_CASE("PyTorch's expandable segments are recorded as virtual memory", "[torch-expandable]") {
    const std::string settings = "expandable_segments:True";
    const Finished finished = run_script({settings});
    check_script(finished, settings);
    const TraceContents& trace = finished.trace();
    const Story story = read_story(finished.output);
    CHECK(trace.of_kind(EventKind::kDeviceAlloc).empty());
    uint64_t mapped = 0;
    for (const EventRecord& map : trace.of_kind(EventKind::kMap)) {
        mapped += map.size;
        CHECK(map.flags == kFlagFromAllocator);
        CHECK(map.device == 0);
    }
    CHECK(mapped == story.stats.at("reserved_bytes.all.allocated"));
    uint64_t created = 0;
    std::map<uint64_t, uint64_t> handles;
    for (const EventRecord& event : trace.events) {
        if (event.kind == EventKind::kPhysicalCreate) {
            created += event.size;
            handles[event.address] = event.size;
        } else if (event.kind == EventKind::kPhysicalRelease) {
            CHECK(handles.erase(event.address) == 1);
        }
    }
    uint64_t live = 0;
    for (const auto& [handle, bytes] : handles) {
        live += bytes;
    }
    CHECK(live == story.stats.at("reserved_bytes.all.current"));
    CHECK(created >= mapped);  // the refused request created some pages and released them
    CHECK(!trace.of_kind(EventKind::kAllocRefused).empty());
}

TEST_CASE("without PyTorch's own pool the device layer has the requests", "[torch-async]") {
    const Finished finished =
        run({FT_PYTHON,
             "-c",
             "import torch\n"
             "kept = [torch.empty(5000, device='cuda') for _ in range(9)]\n"
             "print(torch.cuda.get_allocator_backend())\n"},
            {.preload = {shim()},
             .card = "8GiB",
             .environment = {"PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync",
                             "PYTORCH_NO_CUDA_MEMORY_CACHING=0"}});
    CAPTURE(finished.output);
    CHECK(finished.exit_code == 0);
    CHECK(finished.output == "cudaMallocAsync\n");
    for (const TraceContents& trace : finished.traces) {
        CHECK(trace.of_kind(EventKind::kBlockAlloc).empty());
        CHECK(trace.facts.at("allocator_backend") == "cudaMallocAsync");
    }

    const Finished uncached = run(
        {FT_PYTHON,
         "-c",
         "import torch\n"
         "kept = [torch.empty(5000, device='cuda') for _ in range(9)]\n"},
        {.preload = {shim()}, .card = "8GiB", .environment = {"PYTORCH_NO_CUDA_MEMORY_CACHING=1"}});
    CAPTURE(uncached.output);
    CHECK(uncached.exit_code == 0);
    const auto allocations = uncached.trace().of_kind(EventKind::kDeviceAlloc);
    CHECK(allocations.size() == 9);
    for (const EventRecord& event : allocations) {
        CHECK(event.size == 20000);
    }
    CHECK(uncached.trace().of_kind(EventKind::kBlockAlloc).empty());
}
