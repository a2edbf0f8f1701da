#include "analyzer/export/snapshot_stack_writer.h"

namespace fragtrace::analyzer {

SnapshotStackWriter::SnapshotStackWriter(PickleWriter* pickle,
                                         const Timeline& timeline,
                                         Symbolizer* symbols)
    : pickle_(*pickle), timeline_(timeline), symbols_(*symbols) {
    words_.fill(PairMap::kAbsent);
}

void SnapshotStackWriter::word(Word word) {
    PickleWriter::Memo& memo = words_[word];
    if (memo == PairMap::kAbsent) {
        pickle_.text(kWords[word]);
        memo = pickle_.memoize();
    } else {
        pickle_.recall(memo);
    }
}

void SnapshotStackWriter::text(const std::string& text) {
    const auto [found, is_new] = texts_.try_emplace(text);
    if (is_new) {
        pickle_.text(text);
        found->second = pickle_.memoize();
    } else {
        pickle_.recall(found->second);
    }
}

void SnapshotStackWriter::frames(OriginId id) {
    const Origin origin = id < timeline_.origins.size() ? timeline_.origins[id] : Origin{};
    const PickleWriter::Memo memo = stacks_.find(origin.native_stack, origin.python_stack);
    if (memo != PairMap::kAbsent) {
        return pickle_.recall(memo);
    }
    pickle_.begin_list();
    stacks_.set(origin.native_stack, origin.python_stack, pickle_.memoize());
    for (const Frame& one : symbols_.frames(id)) {
        pickle_.item();
        frame(one);
    }
    pickle_.end_list();
}

void SnapshotStackWriter::frame(const Frame& frame) {
    // A native frame without a source file has its library there, as in PyTorch's own snapshots.
    const std::string& file = frame.file.empty() ? frame.module : frame.file;
    const std::string key = frame.function + '\n' + file + '\n' + std::to_string(frame.line);
    const auto [found, is_new] = frames_.try_emplace(key);
    if (!is_new) {
        return pickle_.recall(found->second);
    }
    pickle_.begin_dict();
    found->second = pickle_.memoize();
    pickle_.item();
    word(kName);
    text(frame.function);
    pickle_.item();
    word(kFilename);
    text(file);
    pickle_.item();
    word(kLine);
    pickle_.number(frame.line);
    pickle_.end_dict();
}

}  // namespace fragtrace::analyzer
