// PyTorch's memory snapshots in two ways: a pickle byte by byte, or segments and entries from the
// input.
#include <fragtrace/sizes.h>

#include "tests/fuzz/harness.h"
#include "tests/support/pickle_writer.h"

#include <array>

namespace {

using namespace fragtrace;
using testing::SnapshotWriter;

constexpr std::uint64_t kBase = 0x7f0000000000;
constexpr std::array kActions = {"alloc",
                                 "free_requested",
                                 "free_completed",
                                 "segment_alloc",
                                 "segment_free",
                                 "segment_map",
                                 "segment_unmap",
                                 "snapshot",
                                 "oom",
                                 "pool_id",
                                 ""};
constexpr std::array kStates = {"inactive", "active_allocated", "active_pending_free", "other"};
constexpr std::array kSettings = {
    "", "expandable_segments:True", "max_split_size_mb:20", "backend:cudaMallocAsync"};

std::uint64_t address(fuzz::Input* input) {
    return kBase + input->byte() * 2 * kMiB + input->byte() * std::uint64_t{512};
}

std::uint64_t size(fuzz::Input* input) {
    const std::uint8_t code = input->byte();
    return code == 255 ? ~std::uint64_t{0} : (code % 16 + std::uint64_t{1}) << (9 + code / 16);
}

std::string written(fuzz::Input* input) {
    SnapshotWriter snapshot;
    const std::uint8_t form = input->byte();
    snapshot.settings = kSettings[form % 4];
    snapshot.with_settings = form / 4 % 2 == 0;
    snapshot.with_history = form / 8 % 2 == 0;
    snapshot.of_registration = form / 16 % 2 == 0;
    snapshot.with_stacks = form / 32 % 2 == 0;
    snapshot.entries_with_stacks = form / 64 % 2 == 0;
    snapshot.with_labels = form / 128 == 0;
    while (!input->empty()) {
        const std::uint8_t what = input->byte();
        if (what < 64) {
            SnapshotWriter::Segment segment{.address = address(input),
                                            .blocks = {},
                                            .stream = what % 2 * std::uint64_t{0x70},
                                            .expandable = what / 2 % 2 != 0};
            for (int block = 0; block < what / 4; ++block) {
                segment.blocks.push_back({size(input), kStates[what % 4], size(input)});
            }
            (what == 63 ? snapshot.host_segments : snapshot.segments).push_back(segment);
        } else {
            SnapshotWriter::Entry entry{.action = kActions[what % kActions.size()],
                                        .address = address(input),
                                        .size_bytes = size(input),
                                        .stream = what / 128 * std::uint64_t{0x70}};
            (what % 64 == 63 ? snapshot.host_entries : snapshot.entries).push_back(entry);
        }
    }
    return snapshot.pickle();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    fuzz::Input input(data, size_bytes);
    const std::uint8_t choice = input.byte();
    const std::string pickle = choice < 128 ? std::string(input.rest()) : written(&input);
    fuzz::run_on_recording(choice, fuzz::save("snapshot", pickle));
    return 0;
}
