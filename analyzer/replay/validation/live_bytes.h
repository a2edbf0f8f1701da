// Records which bytes of an address range are in use, and by which owner. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace fragtrace::analyzer {

class LiveBytes {
  public:
    struct Owner {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::uint64_t id = 0;
    };

    // Marks [begin, end) as used; requires begin < end. If an owner already uses one of these
    // bytes, returns that owner and changes nothing.
    std::optional<Owner> take(std::uint64_t begin, std::uint64_t end, std::uint64_t id) {
        const auto after = owners_.lower_bound(begin);
        if (after != owners_.end() && after->first < end) {
            return after->second;
        }
        if (after != owners_.begin()) {
            const Owner& before = std::prev(after)->second;
            if (before.end > begin) {
                return before;
            }
        }
        owners_.emplace_hint(after, begin, Owner{begin, end, id});
        return std::nullopt;
    }

    void give_back(std::uint64_t begin) { owners_.erase(begin); }

    [[nodiscard]] bool empty() const { return owners_.empty(); }

  private:
    std::map<std::uint64_t, Owner> owners_;
};

}  // namespace fragtrace::analyzer
