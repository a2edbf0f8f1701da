#include "analyzer/pools/free_set.h"

#include <iterator>

namespace fragtrace::analyzer {

FreeSets::SetIndex FreeSets::add_set() {
    static_assert(((48 - kUnitLog2 - kPartsLog2 - 1) << kPartsLog2) + 2 * kParts <= kClasses);
    sets_.emplace_back().first.fill(kNoBlock);
    return static_cast<SetIndex>(sets_.size() - 1);
}

// The first class from `size_class` on that has blocks; kClasses = none.
std::uint32_t FreeSets::used_from(const Set& set, std::uint32_t size_class) {
    std::uint32_t word = size_class / 64;
    if (word >= kWords) {
        return kClasses;
    }
    std::uint64_t used = set.used[word] & ~std::uint64_t{0} << size_class % 64;
    if (used == 0) {
        const std::uint32_t words = set.used_words & ~std::uint32_t{1} << word;
        if (words == 0) {
            return kClasses;
        }
        word = static_cast<std::uint32_t>(std::countr_zero(words));
        used = set.used[word];
    }
    return 64 * word + static_cast<std::uint32_t>(std::countr_zero(used));
}

void FreeSets::mark_unused(Set& set, std::uint32_t size_class) {
    std::uint64_t& used = set.used[size_class / 64];
    used &= ~(std::uint64_t{1} << size_class % 64);
    set.used_words &= ~(std::uint32_t{used == 0} << size_class / 64);
}

BlockIndex FreeSets::first_from(const Set& set, std::uint32_t size_class) const {
    const std::uint32_t at = used_from(set, size_class);
    if (at == kClasses) {
        return kNoBlock;
    }
    const BlockIndex first = set.first[at];
    return first != kInTree ? first : set.trees.find(at)->second.begin()->second;
}

BlockIndex FreeSets::lower_bound(SetIndex index, const FreeKey& key) const {
    const Set& set = sets_[index];
    const std::uint32_t size_class = class_of(key);
    BlockIndex block = set.first[size_class];
    if (block == kInTree) {
        const Tree& tree = set.trees.find(size_class)->second;
        const auto found = tree.lower_bound(key);
        block = found != tree.end() ? found->second : kNoBlock;
    }
    while (block != kNoBlock && nodes_[block].key < key) {
        block = nodes_[block].next;
    }
    return block != kNoBlock ? block : first_from(set, size_class + 1);
}

void FreeSets::insert(SetIndex index, const FreeKey& key, BlockIndex block) {
    if (block >= nodes_.size()) {
        nodes_.resize(std::size_t{block} + block / 2 + 1);
    }
    Set& set = sets_[index];
    const std::uint32_t size_class = class_of(key);
    Node& node = nodes_[block];
    node.key = key;
    node.set = index;
    node.size_class = size_class;
    ++set.size;
    BlockIndex previous = kNoBlock;
    BlockIndex next = set.first[size_class];
    if (next == kInTree) {
        node.previous = node.next = kInTree;
        set.trees.find(size_class)->second.emplace(key, block);
        return;
    }
    while (next != kNoBlock && nodes_[next].key < key) {
        previous = next;
        next = nodes_[next].next;
    }
    node.previous = previous;
    node.next = next;
    (previous != kNoBlock ? nodes_[previous].next : set.first[size_class]) = block;
    if (next != kNoBlock) {
        nodes_[next].previous = block;
    }
    set.used[size_class / 64] |= std::uint64_t{1} << size_class % 64;
    set.used_words |= std::uint32_t{1} << size_class / 64;
    if (++set.length[size_class] > kLongList) {
        make_tree(set, size_class);
    }
}

void FreeSets::make_tree(Set& set, std::uint32_t size_class) {
    Tree& tree = set.trees[size_class];
    for (BlockIndex block = set.first[size_class]; block != kNoBlock;) {
        Node& node = nodes_[block];
        tree.emplace_hint(tree.end(), node.key, block);
        block = node.next;
        node.previous = node.next = kInTree;
    }
    set.first[size_class] = kInTree;
    set.length[size_class] = 0;
}

void FreeSets::erase(BlockIndex block) {
    const Node& node = nodes_[block];
    Set& set = sets_[node.set];
    --set.size;
    if (node.next == kInTree) {
        const auto tree = set.trees.find(node.size_class);
        tree->second.erase(node.key);
        if (tree->second.empty()) {  // the next blocks make a list again
            set.trees.erase(tree);
            set.first[node.size_class] = kNoBlock;
            mark_unused(set, node.size_class);
        }
        return;
    }
    --set.length[node.size_class];
    (node.previous != kNoBlock ? nodes_[node.previous].next : set.first[node.size_class]) =
        node.next;
    if (node.next != kNoBlock) {
        nodes_[node.next].previous = node.previous;
    } else if (node.previous == kNoBlock) {
        mark_unused(set, node.size_class);
    }
}

BlockIndex FreeSets::first(SetIndex set) const {
    return first_from(sets_[set], 0);
}

BlockIndex FreeSets::next(BlockIndex block) const {
    const Node& node = nodes_[block];
    const Set& set = sets_[node.set];
    BlockIndex next = node.next;
    if (next == kInTree) {
        const Tree& tree = set.trees.find(node.size_class)->second;
        const auto found = tree.upper_bound(node.key);
        next = found != tree.end() ? found->second : kNoBlock;
    }
    return next != kNoBlock ? next : first_from(set, node.size_class + 1);
}

// The last block of the last class before `end` that has any.
BlockIndex FreeSets::last_before(const Set& set, std::uint32_t end) const {
    while (end > 0 && set.first[end - 1] == kNoBlock) {
        --end;
    }
    if (end == 0) {
        return kNoBlock;
    }
    BlockIndex block = set.first[end - 1];
    if (block == kInTree) {
        return set.trees.find(end - 1)->second.rbegin()->second;
    }
    while (nodes_[block].next != kNoBlock) {
        block = nodes_[block].next;
    }
    return block;
}

BlockIndex FreeSets::last(SetIndex set) const {
    return last_before(sets_[set], kClasses);
}

BlockIndex FreeSets::previous(BlockIndex block) const {
    const Node& node = nodes_[block];
    const Set& set = sets_[node.set];
    BlockIndex previous = node.previous;
    if (previous == kInTree) {
        const Tree& tree = set.trees.find(node.size_class)->second;
        const auto found = tree.find(node.key);
        previous = found != tree.begin() ? std::prev(found)->second : kNoBlock;
    }
    return previous != kNoBlock ? previous : last_before(set, node.size_class);
}

void FreeSets::append_to(SetIndex set, std::vector<BlockIndex>& blocks) const {
    blocks.reserve(blocks.size() + size(set));
    for (BlockIndex block = first(set); block != kNoBlock; block = next(block)) {
        blocks.push_back(block);
    }
}

}  // namespace fragtrace::analyzer
