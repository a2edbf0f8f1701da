// A table of distinct texts, numbered from 0. Bounded; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

class TextTable {
  public:
    static constexpr std::uint32_t kFull = 0xffffffffu;
    static constexpr std::size_t kMostTexts = std::size_t{1} << 22;
    static constexpr std::size_t kMostBytes = std::size_t{1} << 28;

    TextTable() : slots_(1024, kFull) {}

    // Returns the number of the text; kFull if there is no room for a new one.
    std::uint32_t number(std::string_view text) {
        // Each entry of a history has the same few texts.
        if (last_found_ < begins_.size() && view(last_found_) == text) {
            return last_found_;
        }
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = std::hash<std::string_view>{}(text)&mask;
        for (std::size_t probes = 0; slots_[at] != kFull; at = (at + 1) & mask) {
            if (view(slots_[at]) == text) {
                last_found_ = slots_[at];
                return last_found_;
            }
            if (++probes > kMostProbes) {
                return kFull;  // hostile input: hashes collide
            }
        }
        if (begins_.size() >= kMostTexts || bytes_.size() + text.size() > kMostBytes) {
            return kFull;
        }
        const auto number = static_cast<std::uint32_t>(begins_.size());
        slots_[at] = number;
        begins_.push_back(static_cast<std::uint32_t>(bytes_.size()));
        bytes_.append(text);
        if (begins_.size() * 2 > slots_.size()) {
            grow();
        }
        return number;
    }

    // Valid until the next call of number().
    [[nodiscard]] std::string_view view(std::uint32_t number) const {
        const std::size_t end = number + 1 < begins_.size() ? begins_[number + 1] : bytes_.size();
        return std::string_view(bytes_).substr(begins_[number], end - begins_[number]);
    }

    [[nodiscard]] std::size_t size() const { return begins_.size(); }

  private:
    static constexpr std::size_t kMostProbes = 4096;

    void grow() {
        slots_.assign(slots_.size() * 2, kFull);
        const std::size_t mask = slots_.size() - 1;
        for (std::uint32_t number = 0; number < begins_.size(); ++number) {
            std::size_t at = std::hash<std::string_view>{}(view(number)) & mask;
            while (slots_[at] != kFull) {
                at = (at + 1) & mask;
            }
            slots_[at] = number;
        }
    }

    std::uint32_t last_found_ = 0;
    std::string bytes_;
    std::vector<std::uint32_t> begins_;
    std::vector<std::uint32_t> slots_;
};

}  // namespace fragtrace::analyzer
