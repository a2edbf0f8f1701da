// Blocks as slices in a file of Perfetto.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/export/perfetto_file.h"
#include "analyzer/model/recorded_state.h"

#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

// The numbers of an origin's texts in the file; 0 = not written yet.
struct OriginTexts {
    PerfettoFile::Text line;
    PerfettoFile::Text stack;
};

// Writes each block of a device as a slice, from its allocation until it can be reused. Blocks
// overlap in any way, so each gets a track that no other live block uses.
class BlockSlices : public RecordedWatch {
  public:
    // `texts` has one entry per origin and one more; devices share it. `now` is the time in the
    // file. All must outlive this object.
    BlockSlices(const Analysis& analysis,
                DeviceId device,
                PerfettoFile::Track parent,
                std::vector<OriginTexts>* texts,
                const std::uint64_t* now,
                PerfettoFile* file);

    void block_begins(const RecordedBlock& block) override;
    void block_waits(const RecordedBlock& block) override;
    void block_ends(const RecordedBlock& block) override;
    void all_ends() override;

    void segment_begins(const RecordedSegment& /*segment*/) override {}

    void range_ends(const RecordedSegment* /*segment*/,
                    DeviceAddress /*begin*/,
                    DeviceAddress /*end*/) override {}

    void pool_changes(std::uint32_t /*private_pool*/, bool /*released*/) override {}

  private:
    struct Life {
        std::size_t lane = 0;
        std::uint64_t freed = 0;  // when the program freed it, if it waits since; 0 = not yet
    };

    std::size_t free_lane();
    void end(const Life& life);
    const OriginTexts& texts_of(OriginId origin);

    const Analysis& analysis_;
    std::string name_;
    PerfettoFile::Track parent_;
    std::vector<OriginTexts>& texts_;
    const std::uint64_t* now_;
    PerfettoFile* file_;
    std::vector<PerfettoFile::Track> lanes_;
    // The lanes that no live block uses. The first one is used next, so that there are few.
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free_;
    std::unordered_map<DeviceAddress, Life> live_;
};

}  // namespace fragtrace::analyzer
