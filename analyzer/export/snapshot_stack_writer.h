// Texts and stacks of a snapshot's pickle. Each different one is written once; later ones refer to
// it. Not thread-safe.
#pragma once

#include "analyzer/export/pickle_writer.h"
#include "analyzer/model/pair_map.h"
#include "analyzer/model/timeline.h"
#include "analyzer/snapshot/snapshot_words.h"
#include "analyzer/trace/symbols.h"

#include <array>
#include <string>
#include <unordered_map>

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
    void frame(const Frame& frame);

    PickleWriter& pickle_;
    const Timeline& timeline_;
    Symbolizer& symbols_;
    std::array<PickleWriter::Memo, kWordCount> words_;
    std::unordered_map<std::string, PickleWriter::Memo> texts_;
    std::unordered_map<std::string, PickleWriter::Memo> frames_;  // key: function, file and line
    PairMap stacks_;  // key: native stack, Python stack
};

}  // namespace fragtrace::analyzer
