#include "analyzer/snapshot/snapshot_stacks.h"

#include "analyzer/trace/code_files.h"

#include <set>

namespace fragtrace::analyzer {

// If one frame of a file is native, all frames of the file are. A program that embeds Python may
// have any name, so the file name alone does not show it.
std::vector<PythonCode> SnapshotStacks::take_codes() {
    std::set<std::string> native_files;
    for (const PythonCode& code : codes_) {
        if (code.native) {
            native_files.insert(code.file);
        }
    }
    for (PythonCode& code : codes_) {
        code.native = code.native || native_files.contains(code.file);
    }
    return std::move(codes_);
}

std::uint32_t SnapshotStacks::frame(const FrameKey& key,
                                    std::string_view function_text,
                                    std::string_view file_text) {
    std::uint32_t code = code_ids_.find(key.function, key.file);
    if (code == PairMap::kAbsent) {
        code = static_cast<std::uint32_t>(codes_.size());
        codes_.push_back({.function = std::string(function_text),
                          .file = std::string(file_text),
                          .first_line = 0,
                          .native = key.native || is_native_frame(function_text, file_text)});
        code_ids_.set(key.function, key.file, code);
    }
    std::uint32_t number = frame_ids_.find(code, key.line);
    if (number == PairMap::kAbsent) {
        if (frames_.size() >= kMostFrames) {
            return kFull;
        }
        number = static_cast<std::uint32_t>(frames_.size());
        frames_.push_back({code, key.line});
        frame_ids_.set(code, key.line, number);
    }
    return number;
}

StackNode SnapshotStacks::node_of(std::uint32_t parent, std::uint32_t frame) const {
    return {.parent = parent,
            .line = frames_[frame].line,
            .frame = kPythonFrame | std::uint64_t{frames_[frame].code} << 32};
}

bool SnapshotStacks::is_stack(std::uint32_t node, std::span<const std::uint32_t> frames) const {
    for (const std::uint32_t frame : frames) {
        if (node == 0) {
            return false;
        }
        const StackNode same = node_of(nodes_[node].parent, frame);
        if (nodes_[node].line != same.line || nodes_[node].frame != same.frame) {
            return false;
        }
        node = same.parent;
    }
    return node == 0;
}

std::uint32_t SnapshotStacks::stack(std::span<const std::uint32_t> frames) {
    std::uint64_t hash = frames.size();
    for (const std::uint32_t frame : frames) {
        hash = (hash ^ frame) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
    }
    std::uint32_t node = stack_ids_.find(hash, 0);
    if (node != PairMap::kAbsent && is_stack(node, frames)) {
        return node;
    }
    node = 0;
    for (std::size_t i = frames.size(); i-- > 0;) {
        std::uint32_t child = node_ids_.find(node, frames[i]);
        if (child == PairMap::kAbsent) {
            if (nodes_.size() >= kMostNodes) {
                return kFull;
            }
            child = static_cast<std::uint32_t>(nodes_.size());
            nodes_.push_back(node_of(node, frames[i]));
            node_ids_.set(node, frames[i], child);
        }
        node = child;
    }
    stack_ids_.set(hash, 0, node);
    return node;
}

}  // namespace fragtrace::analyzer
