#include "analyzer/export/snapshot_stack_writer.h"

#include "analyzer/trace/code_files.h"

#include <utility>

namespace fragtrace::analyzer {
namespace {

// A native frame without a source file has its library, as in PyTorch's own snapshots.
std::string file_of(const Frame& frame) {
    if (!frame.file.empty() || frame.kind == Frame::Kind::kPython) {
        return frame.file;
    }
    return frame.module.empty() ? "??" : frame.module;
}

}  // namespace

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

// Different addresses may have the same names, so that different stacks have the same frames.
void SnapshotStackWriter::frames(OriginId id) {
    const Origin origin = id < timeline_.origins.size() ? timeline_.origins[id] : Origin{};
    const PickleWriter::Memo known = stacks_.find(origin.native_stack, origin.python_stack);
    if (known != PairMap::kAbsent) {
        return pickle_.recall(known);
    }
    std::vector<Written*> found;
    std::vector<std::uint32_t> numbers;
    const std::vector<Frame>& frames = symbols_.frames(id);
    for (const Frame& one : frames) {
        const auto [entry, is_new] = frames_.try_emplace(one.function + '\n' + file_of(one) + '\n' +
                                                         std::to_string(one.line));
        if (is_new) {
            entry->second.number = static_cast<std::uint32_t>(frames_.size());
        }
        found.push_back(&entry->second);
        numbers.push_back(entry->second.number);
    }
    const auto [list, is_new] = lists_.try_emplace(std::move(numbers));
    if (is_new) {
        pickle_.begin_list();
        list->second = pickle_.memoize();
        for (std::size_t i = 0; i < frames.size(); ++i) {
            pickle_.item();
            frame(frames[i], found[i]);
        }
        pickle_.end_list();
    } else {
        pickle_.recall(list->second);
    }
    stacks_.set(origin.native_stack, origin.python_stack, list->second);
}

void SnapshotStackWriter::frame(const Frame& frame, Written* written) {
    if (written->memo != PairMap::kAbsent) {
        return pickle_.recall(written->memo);
    }
    pickle_.begin_dict();
    written->memo = pickle_.memoize();
    pickle_.item();
    word(kName);
    text(frame.function);
    pickle_.item();
    word(kFilename);
    text(file_of(frame));
    pickle_.item();
    word(kLine);
    pickle_.number(frame.line);
    // PyTorch writes no such key. It shows that the file is a program, not a Python script.
    if (frame.kind == Frame::Kind::kNative && !is_native_frame(frame.function, file_of(frame))) {
        pickle_.item();
        word(kNative);
        pickle_.truth(true);
    }
    pickle_.end_dict();
}

}  // namespace fragtrace::analyzer
