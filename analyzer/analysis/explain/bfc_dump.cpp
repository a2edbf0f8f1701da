#include "analyzer/analysis/explain/bfc_dump.h"

#include "analyzer/support/text.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kMostMemoryBytes = std::uint64_t{1} << 50;
constexpr std::size_t kMostSizes = 1 << 20;

// The number after `label`, blanks skipped. nullopt if it exceeds kMostMemoryBytes, more than any
// memory.
std::optional<std::uint64_t> count_after(std::string_view line, std::string_view label) {
    std::size_t at = line.find(label);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    at += label.size();
    while (at < line.size() && line[at] == ' ') {
        ++at;
    }
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), number);
    return error == std::errc() && end != line.data() + at && number <= kMostMemoryBytes
               ? std::optional(number)
               : std::nullopt;
}

// Removes the commas between groups of three digits.
std::string without_separators(std::string_view text) {
    std::string number;
    for (std::size_t i = 0; i < text.size() && (is_digit(text[i]) || text[i] == ','); ++i) {
        if (text[i] != ',') {
            number += text[i];
            continue;
        }
        const bool group = i + 3 < text.size() && is_digit(text[i + 1]) && is_digit(text[i + 2]) &&
                           is_digit(text[i + 3]) &&
                           (i + 4 == text.size() || !is_digit(text[i + 4]));
        if (!group) {
            return number + std::string(text.substr(i));
        }
    }
    return number +
           std::string(text.substr(std::min(text.size(), text.find_first_not_of("0123456789,"))));
}

// Reads a figure of any release: plain bytes, or rounded with a unit. The printing function first
// drops what is below 1/1024 of the unit, then rounds to the last place.
std::optional<PrintedSize> figure_at(std::string_view text) {
    constexpr std::size_t kLongestFigure = 40;
    const std::string number = without_separators(text.substr(0, kLongestFigure));
    const std::size_t digits = std::min(number.size(), number.find_first_not_of("0123456789"));
    if (digits == 0) {
        return std::nullopt;
    }
    auto size = size_at(number);
    if (!size) {  // the number has no unit
        size = size_at(number.substr(0, digits) + " bytes");
    }
    if (!size || size->bytes > kMostMemoryBytes) {
        return std::nullopt;
    }
    for (const auto& [unit, bytes] :
         {std::pair{"MiB", kMiB}, {"GiB", kGiB}, {"TiB", 1024 * kGiB}}) {
        size->error_bytes += size->text.ends_with(unit) ? bytes / 1024 : 0;
    }
    return size;
}

// The text after `label`, without the colon and blanks. `label` must be a separate word:
// "MaxInUse:" is not "InUse:". Empty: not found.
std::string_view after_word(std::string_view line, std::string_view label) {
    const std::size_t at = line.find(label);
    if (at == std::string_view::npos || (at != 0 && line[at - 1] != ' ' && line[at - 1] != '\t')) {
        return {};
    }
    const std::string_view rest = line.substr(at + label.size());
    return rest.substr(std::min(rest.size(), rest.find_first_not_of(": \t")));
}

constexpr std::string_view kRanOut = "ran out of memory trying to allocate ";

}  // namespace

void BfcDump::Chunks::add(std::uint64_t size_bytes) {
    ++count;
    bytes += std::min(size_bytes, std::numeric_limits<std::uint64_t>::max() - bytes);
    largest_bytes = std::max(largest_bytes, size_bytes);
}

bool BfcDumpReader::begins(std::string_view line) {
    return line.find(kRanOut) != std::string_view::npos &&
           line.find("Allocator (") != std::string_view::npos;
}

// Keeps the more precise of two values that agree.
void BfcDumpReader::set(std::optional<PrintedSize>* figure, const PrintedSize& value) {
    const bool known = figure->has_value();
    const bool agrees =
        known && value.least() <= (*figure)->most() && (*figure)->least() <= value.most();
    dump_.conflicts += known && !agrees ? 1 : 0;
    if (!agrees || value.error_bytes < (*figure)->error_bytes) {
        *figure = value;
    }
}

bool BfcDumpReader::add(std::string_view line) {
    if (begins(line)) {
        constexpr std::string_view kName = "Allocator (";
        const std::size_t name = line.find(kName) + kName.size();
        dump_.allocator = line.substr(name, line.find(')', name) - name);
        dump_.asked = figure_at(line.substr(line.find(kRanOut) + kRanOut.size()));
        dump_.tolerated = line.find("freed_by_count=") != std::string_view::npos;
        dump_.rounded_bytes = count_after(line, "(rounded to ");
        return true;
    }
    const auto size = count_after(line, " of size ");
    if (size && (line.find("InUse at ") != std::string_view::npos ||
                 line.find("Chunk at ") != std::string_view::npos)) {
        dump_.in_use.add(*size);
        return true;
    }
    if (size && line.find("Free ") != std::string_view::npos &&
        line.find(" at ") != std::string_view::npos) {
        dump_.free.add(*size);
        return true;
    }
    if (line.find("Next region of size ") != std::string_view::npos) {
        dump_.regions.add(count_after(line, "Next region of size ").value_or(0));
        return true;
    }
    if (size && line.find(" Chunks of size ") != std::string_view::npos) {
        const std::string_view before = line.substr(0, line.find(" Chunks of size "));
        const std::size_t first = before.find_last_not_of("0123456789") + 1;
        std::uint64_t count = 0;
        std::from_chars(before.data() + first, before.data() + before.size(), count);
        if (dump_.sizes_in_use.size() < kMostSizes && count <= kMostMemoryBytes) {
            dump_.sizes_in_use[*size] += count;
        }
        return true;
    }

    return add_figures(line) || line.find("BFCAllocator dump for") != std::string_view::npos ||
           line.find("Bin (") != std::string_view::npos;
}

bool BfcDumpReader::add_figures(std::string_view line) {
    struct Figure {
        std::string_view label;
        std::optional<PrintedSize> BfcDump::*value;
    };

    constexpr Figure kFigures[] = {
        {"total_region_allocated_bytes_:", &BfcDump::pool},
        {"Total bytes in pool:", &BfcDump::pool},
        {"pool size", &BfcDump::pool},
        {"memory_limit_:", &BfcDump::limit},
        {"pool limit", &BfcDump::limit},
        {"LargestFreeBlock:", &BfcDump::largest_free},
        {"InUse:", &BfcDump::in_use_sum},
        {"Limit:", &BfcDump::limit},
    };
    bool known = false;
    const auto add = [&](std::string_view text, std::optional<PrintedSize> BfcDump::*figure) {
        if (text.size() > 1 && text[0] == '-' && is_digit(text[1])) {
            ++dump_.negative;
            known = true;
        } else if (const auto value = figure_at(text)) {
            known = true;
            // Releases that do not compute this figure print 0.
            if (figure != &BfcDump::largest_free || value->bytes != 0) {
                set(&(dump_.*figure), *value);
            }
        }
    };
    for (const Figure& figure : kFigures) {
        add(after_word(line, figure.label), figure.value);
    }
    // Example: "largest free chunk usable by lower end 1.50GiB".
    constexpr std::string_view kEnd = " end ";
    const std::string_view usable = after_word(line, "largest free chunk usable by");
    if (const std::size_t end = usable.find(kEnd); end != std::string_view::npos) {
        add(usable.substr(end + kEnd.size()), &BfcDump::largest_usable);
    }
    return known;
}

}  // namespace fragtrace::analyzer
