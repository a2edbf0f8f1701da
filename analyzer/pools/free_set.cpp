#include "analyzer/pools/free_set.h"

#include <iterator>

namespace fragtrace::analyzer {

FreeSets::SetIndex FreeSets::add_set() {
    if (!unused_sets_.empty()) {
        const SetIndex set = unused_sets_.back();
        unused_sets_.pop_back();
        return set;
    }
    const auto set = static_cast<SetIndex>(sets_.size());
    sets_.emplace_back();
    if (set < kRoomySets) {
        make_table(sets_[set]);
    }
    return set;
}

// Last class before `end` that has blocks; kClasses = none.
std::uint32_t FreeSets::used_before(const Table& table, std::uint32_t end) {
    const auto highest = [](std::uint64_t bits) {
        return static_cast<std::uint32_t>(std::bit_width(bits)) - 1;
    };
    std::uint32_t word = end / 64;
    const std::uint64_t below = (std::uint64_t{1} << end % 64) - 1;
    if (word < kWords && (table.used[word] & below) != 0) {
        return 64 * word + highest(table.used[word] & below);
    }
    const std::uint32_t words = table.used_words & ((std::uint32_t{1} << word) - 1);
    if (words == 0) {
        return kClasses;
    }
    word = highest(words);
    return 64 * word + highest(table.used[word]);
}

void FreeSets::insert_in_tree(Table& table, FreeKey key, BlockIndex block) {
    Node& node = nodes_[block];
    node.previous = node.next = kInTree;
    table.trees.find(node.size_class)->second.emplace(key, block);
}

void FreeSets::erase_from_tree(Table& table, const Node& node) {
    const auto tree = table.trees.find(node.size_class);
    tree->second.erase(node.key);
    if (tree->second.empty()) {  // the class starts again as a list
        table.trees.erase(tree);
        table.first[node.size_class] = kNoBlock;
        mark_unused(table, node.size_class);
    }
}

BlockIndex FreeSets::not_below_in_tree(const Table& table, std::uint32_t size_class, FreeKey key) {
    const Tree& tree = table.trees.find(size_class)->second;
    const auto found = tree.lower_bound(key);
    return found != tree.end() ? found->second : kNoBlock;
}

BlockIndex FreeSets::first_in_tree(const Table& table, std::uint32_t size_class) {
    return table.trees.find(size_class)->second.begin()->second;
}

void FreeSets::insert_small(SetIndex index, FreeKey key, BlockIndex block) {
    Set& set = sets_[index];
    if (set.table == kNoTable && set.size > kShortSet) {
        make_table(set);
    }
    if (set.table == kNoTable) {
        link(&set.first, key, block);
    } else {
        insert(tables_[set.table], key, block);
    }
}

void FreeSets::make_table(Set& set) {
    static_assert(((48 - kUnitLog2 - kPartsLog2 - 1) << kPartsLog2) + 2 * kParts <= kClasses);
    if (unused_tables_.empty()) {
        set.table = static_cast<TableIndex>(tables_.size());
        tables_.emplace_back().first.fill(kNoBlock);
    } else {
        set.table = unused_tables_.back();
        unused_tables_.pop_back();
    }
    for (BlockIndex block = set.first; block != kNoBlock;) {
        const BlockIndex next = nodes_[block].next;
        insert(tables_[set.table], nodes_[block].key, block);
        block = next;
    }
    set.first = kNoBlock;
}

void FreeSets::drop_table(Set& set) {
    Table& table = tables_[set.table];
    for (std::size_t left = set.size; left != 0; --left) {
        const BlockIndex block = last_before(table, kClasses);
        erase(table, nodes_[block]);
        link(&set.first, nodes_[block].key, block);
    }
    unused_tables_.push_back(set.table);
    set.table = kNoTable;
}

void FreeSets::make_tree(Table& table, std::uint32_t size_class) {
    Tree& tree = table.trees[size_class];
    for (BlockIndex block = table.first[size_class]; block != kNoBlock;) {
        Node& node = nodes_[block];
        tree.emplace_hint(tree.end(), node.key, block);
        block = node.next;
        node.previous = node.next = kInTree;
    }
    table.first[size_class] = kInTree;
    table.length[size_class] = 0;
}

void FreeSets::erase_small(const Node& node) {
    Set& set = sets_[node.set];
    if (set.table == kNoTable) {
        unlink(&set.first, node);
        return;
    }
    erase(tables_[set.table], node);
    if (set.size == kShortAgain) {
        drop_table(set);
    }
}

BlockIndex FreeSets::first(SetIndex index) const {
    const Table* table = table_of(index);
    return table != nullptr ? first_from(*table, 0) : sets_[index].first;
}

BlockIndex FreeSets::next(BlockIndex block) const {
    const Node& node = nodes_[block];
    const Table* table = table_of(node.set);
    if (table == nullptr) {
        return node.next;
    }
    BlockIndex next = node.next;
    if (next == kInTree) {
        const Tree& tree = table->trees.find(node.size_class)->second;
        const auto found = tree.upper_bound(node.key);
        next = found != tree.end() ? found->second : kNoBlock;
    }
    return next != kNoBlock ? next : first_from(*table, node.size_class + 1);
}

BlockIndex FreeSets::last_of(BlockIndex first) const {
    BlockIndex block = first;
    while (block != kNoBlock && nodes_[block].next != kNoBlock) {
        block = nodes_[block].next;
    }
    return block;
}

// Returns the last block of the last class before `end` that has blocks.
BlockIndex FreeSets::last_before(const Table& table, std::uint32_t end) const {
    const std::uint32_t at = used_before(table, end);
    if (at == kClasses) {
        return kNoBlock;
    }
    const BlockIndex first = table.first[at];
    return first != kInTree ? last_of(first) : table.trees.find(at)->second.rbegin()->second;
}

BlockIndex FreeSets::last(SetIndex index) const {
    const Table* table = table_of(index);
    return table != nullptr ? last_before(*table, kClasses) : last_of(sets_[index].first);
}

BlockIndex FreeSets::previous(BlockIndex block) const {
    const Node& node = nodes_[block];
    const Table* table = table_of(node.set);
    if (table == nullptr) {
        return node.previous;
    }
    BlockIndex previous = node.previous;
    if (previous == kInTree) {
        const Tree& tree = table->trees.find(node.size_class)->second;
        const auto found = tree.find(node.key);
        previous = found != tree.begin() ? std::prev(found)->second : kNoBlock;
    }
    return previous != kNoBlock ? previous : last_before(*table, node.size_class);
}

void FreeSets::append_to(SetIndex set, std::vector<BlockIndex>& blocks) const {
    for (BlockIndex block = first(set); block != kNoBlock; block = next(block)) {
        blocks.push_back(block);
    }
}

// ---- by stream ----------------------------------------------------------------------------------

FreeSets::SetIndex SetsByStream::find_among_many(Slot slot) const {
    const auto found = many_.find(slot);
    return found != many_.end() ? found->second : kNoSet;
}

FreeSets::SetIndex SetsByStream::add(Slot slot, FreeSets& sets) {
    if (slot >= kFew) {
        return many_[slot] = sets.add_set();
    }
    if (slot >= few_.size()) {
        few_.resize(slot + 1, kNoSet);
    }
    return few_[slot] = sets.add_set();
}

std::vector<SetsByStream::Slot> SetsByStream::in_use(FreeSets& sets) {
    std::vector<Slot> slots;
    for (Slot slot = 0; slot < few_.size(); ++slot) {
        if (few_[slot] != kNoSet && !sets.empty(few_[slot])) {
            slots.push_back(slot);
        }
    }
    for (auto at = many_.begin(); at != many_.end();) {
        if (!sets.empty(at->second)) {
            slots.push_back(at->first);
            ++at;
            continue;
        }
        sets.remove_set(at->second);
        at = many_.erase(at);
    }
    return slots;
}

}  // namespace fragtrace::analyzer
