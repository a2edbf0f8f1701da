// Construction of lists, dicts and pairs by the opcodes of pickle.cpp.
#include "analyzer/snapshot/pickle.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

using Kind = PickleValue::Kind;

constexpr std::uint64_t kMostMoved = std::uint64_t{1} << 24;

}  // namespace

bool PickleReader::new_object(PickleValue::Kind kind) {
    // A list or dict takes at least two bytes, plus its content.
    constexpr std::uint64_t kFreeObjects = 4096;
    if (objects_.size() >= kMostMemo || lists_.size() >= kMostItems ||
        objects_.size() > kFreeObjects + (opcode_offset_ + 1) / 3) {
        fail("more lists and dicts than a snapshot has");
        return false;
    }
    const auto id = static_cast<std::uint32_t>(objects_.size());
    objects_.push_back({kind, 0, static_cast<std::uint32_t>(lists_.size())});
    if (kind == Kind::kList) {
        lists_.push_back({id, static_cast<std::uint32_t>(items_.size()), 0});
    }
    return push({.kind = kind, .index = id});
}

bool PickleReader::memoize(std::uint64_t index) {
    if (stack_.empty() || index > memo_.size()) {
        return false;
    }
    const PickleValue& value = stack_.back();
    const Memo entry(value.kind, value.index & kMostIndex);
    if (value.kind != Kind::kText && value.kind != Kind::kPair && value.kind != Kind::kList &&
        value.kind != Kind::kDict && value.kind != Kind::kOpaque) {
        fail("a number is stored for later use, which no pickler does");
        return false;
    }
    if (index < memo_.size()) {
        memo_[index] = entry;
        return true;
    }
    if (memo_.size() >= kMostMemo) {
        fail("more objects than a snapshot has");
        return false;
    }
    memo_.push_back(entry);
    return true;
}

bool PickleReader::fail_absent(std::uint64_t index) {
    fail(fmt::format("refers to object {}, which is not there", index));
    return false;
}

bool PickleReader::pop_mark(std::size_t* begin) {
    if (marks_.empty()) {
        return false;
    }
    *begin = marks_.back();
    marks_.pop_back();
    return true;
}

// Moves the keys and values from `begin` on into the dict below them.
bool PickleReader::fill_dict(std::size_t begin) {
    const std::size_t count = stack_.size() - begin;
    if (begin == 0 || count % 2 != 0 || (!marks_.empty() && marks_.back() > begin - 1)) {
        return false;
    }
    const PickleValue dict = stack_[begin - 1];
    if (dict.kind == Kind::kOpaque) {
        stack_.resize(begin);  // more items of an ignored dict
        return true;
    }
    if (dict.kind != Kind::kDict) {
        fail(dict.kind == Kind::kRow ? "a dict goes on that was complete" : "no dict to fill");
        return false;
    }
    // Lists that are older than the dict may also belong to other objects.
    const std::size_t older = objects_[dict.index].index;
    std::size_t first_list = lists_.size();
    for (std::size_t i = begin; i < stack_.size(); i += 2) {
        PickleValue& value = stack_[i + 1];
        if (value.kind != Kind::kList && value.kind != Kind::kDict) {
            continue;
        }
        value = resolved(value);
        if (value.kind == Kind::kList) {
            const std::size_t list = objects_[value.index].index;
            first_list = list >= older ? std::min(first_list, list) : first_list;
        }
    }
    const PickleValue meaning = sink_.dict(*this, std::span(stack_).subspan(begin));
    objects_[dict.index] = {meaning.kind, meaning.row_kind, meaning.index};
    close_lists(first_list);
    stack_.resize(begin);
    stack_.back() = meaning;
    return true;
}

// Closes the lists of the dict, and the lists in them. They are the newest lists.
void PickleReader::close_lists(std::size_t first) {
    if (first >= lists_.size()) {
        return;
    }
    std::size_t items = items_.size();
    for (std::size_t i = first; i < lists_.size(); ++i) {
        Object& object = objects_[lists_[i].object];
        if (object.kind == Kind::kList) {
            object = {Kind::kOpaque, 0, 0};
        }
        items = std::min<std::size_t>(items, lists_[i].first);
    }
    lists_.resize(first);
    if (first <= floor_list_) {
        floor_list_ = kNoList;
        floor_ = 0;
    }
    items_.resize(std::max(items, floor_));
}

// Moves the values from `begin` on into the list below them.
bool PickleReader::append(std::size_t begin) {
    if (begin == 0 || (!marks_.empty() && marks_.back() > begin - 1)) {
        return false;
    }
    const PickleValue target = resolved(stack_[begin - 1]);
    if (target.kind != Kind::kList) {
        if (target.kind != Kind::kOpaque) {
            fail("a list goes on that was complete");
            return false;
        }
        stack_.resize(begin);
        return true;
    }
    const std::size_t count = stack_.size() - begin;
    List& list = lists_[objects_[target.index].index];
    if (!make_room(count)) {
        fail("longer lists than a snapshot has");
        return false;
    }
    if (list.first + list.count != items_.size() && !move_to_tail(&list)) {
        return false;
    }
    for (std::size_t i = begin; i < stack_.size(); ++i) {
        items_.push_back(resolved(stack_[i]));
    }
    touched_items_.use(items_.size() * sizeof(PickleValue));
    list.count += static_cast<std::uint32_t>(count);
    if (objects_[target.index].index + 1 != lists_.size()) {
        floor_list_ = std::min(floor_list_, objects_[target.index].index);
        floor_ = items_.size();
    }
    stack_.resize(begin);
    return true;
}

// Returns false if `count` more items in open lists would be too many.
bool PickleReader::make_room(std::size_t count) {
    if (items_.size() + count > kMostItems) {
        return false;
    }
    if (items_.size() + count > items_.capacity()) {
        touched_items_.stop();  // the items move to other memory
    }
    return true;
}

// Other lists were added after this list's items, so its items move to the end.
bool PickleReader::move_to_tail(List* list) {
    moved_items_ += list->count;
    if (moved_items_ > kMostMoved || !make_room(list->count)) {
        fail("lists are interleaved as in no snapshot");
        return false;
    }
    const std::size_t first = list->first;
    list->first = static_cast<std::uint32_t>(items_.size());
    items_.resize(items_.size() + list->count);
    std::copy_n(items_.begin() + static_cast<std::ptrdiff_t>(first),
                list->count,
                items_.begin() + static_cast<std::ptrdiff_t>(list->first));
    return true;
}

// A tuple of two integers is kept; all other tuples are ignored.
bool PickleReader::tuple(std::size_t begin) {
    if (!marks_.empty() && marks_.back() > begin) {
        return false;
    }
    PickleValue result = {.kind = Kind::kOpaque};
    if (stack_.size() - begin == 2 && stack_[begin].kind == Kind::kInteger &&
        stack_[begin + 1].kind == Kind::kInteger) {
        const std::pair both = {stack_[begin].number, stack_[begin + 1].number};
        const auto [found, is_new] =
            pair_numbers_.try_emplace(both, static_cast<std::uint32_t>(pairs_.size()));
        if (is_new && pairs_.size() >= kMostPairs) {
            fail("more different pairs of numbers than a snapshot has pools");
            return false;
        }
        if (is_new) {
            pairs_.push_back(both);
        }
        result.kind = Kind::kPair;
        result.index = found->second;
    }
    stack_.resize(begin);
    return push(result);
}

}  // namespace fragtrace::analyzer
