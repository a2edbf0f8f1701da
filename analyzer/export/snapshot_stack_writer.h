// Texts and stacks of a snapshot's pickle. Each different one is written once; later ones refer to
// it. Not thread-safe.
#pragma once

#include "analyzer/export/pickle_writer.h"
#include "analyzer/model/pair_map.h"
#include "analyzer/model/timeline.h"
#include "analyzer/snapshot/snapshot_words.h"
#include "analyzer/trace/symbols.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

class SnapshotStackWriter {
  public:
    // All must outlive the writer.
    SnapshotStackWriter(PickleWriter* pickle, const Timeline& timeline, Symbolizer* symbols);

    void word(Word word);
    void text(const std::string& text);
    // The list of frames, innermost first.
    void frames(OriginId origin);

  private:
    // A frame, or a list of frames.
    struct Written {
        std::uint32_t number = 0;
        PickleWriter::Memo memo = PairMap::kAbsent;
    };

    void frame(const Frame& frame, Written* written);

    PickleWriter& pickle_;
    const Timeline& timeline_;
    Symbolizer& symbols_;
    std::array<PickleWriter::Memo, kWordCount> words_;
    std::unordered_map<std::string, PickleWriter::Memo> texts_;
    std::unordered_map<std::string, Written> frames_;  // key: function, file and line
    std::map<std::vector<std::uint32_t>, PickleWriter::Memo> lists_;  // key: numbers of frames
    PairMap stacks_;  // key: native and Python stack
};

}  // namespace fragtrace::analyzer
