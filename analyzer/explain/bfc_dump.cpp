#include "analyzer/explain/bfc_dump.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;
constexpr std::size_t kMostSizes = 1 << 20;

// The number after `label`, blanks skipped; numbers that no memory has are none.
std::optional<std::uint64_t> number_after(std::string_view line, std::string_view label) {
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
    return error == std::errc() && end != line.data() + at && number <= kMostBytes
               ? std::optional(number)
               : std::nullopt;
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

void BfcDumpReader::set(std::optional<std::uint64_t>* figure, std::optional<std::uint64_t> value) {
    if (value) {
        dump_.conflicts += *figure && **figure != *value ? 1 : 0;
        *figure = value;
    }
}

bool BfcDumpReader::add(std::string_view line) {
    if (begins(line)) {
        constexpr std::string_view kName = "Allocator (";
        const std::size_t name = line.find(kName) + kName.size();
        dump_.allocator = line.substr(name, line.find(')', name) - name);
        dump_.asked = size_after(line, kRanOut);
        dump_.rounded_bytes = number_after(line, "(rounded to ");
        return true;
    }
    const auto size = number_after(line, " of size ");
    if (size && line.find("InUse at ") != std::string_view::npos) {
        dump_.in_use.add(*size);
        return true;
    }
    if (size && line.find("Free ") != std::string_view::npos &&
        line.find(" at ") != std::string_view::npos) {
        dump_.free.add(*size);
        return true;
    }
    if (line.find("Next region of size ") != std::string_view::npos) {
        dump_.regions.add(number_after(line, "Next region of size ").value_or(0));
        return true;
    }
    if (size && line.find(" Chunks of size ") != std::string_view::npos) {
        const std::string_view before = line.substr(0, line.find(" Chunks of size "));
        const std::size_t first = before.find_last_not_of("0123456789") + 1;
        std::uint64_t count = 0;
        std::from_chars(before.data() + first, before.data() + before.size(), count);
        if (dump_.sizes_in_use.size() < kMostSizes && count <= kMostBytes) {
            dump_.sizes_in_use[*size] += count;
        }
        return true;
    }

    struct Figure {
        std::string_view label;
        std::optional<std::uint64_t> BfcDump::*value;
    };

    constexpr Figure kFigures[] = {
        {"total_region_allocated_bytes_:", &BfcDump::pool_bytes},
        {"Total bytes in pool:", &BfcDump::pool_bytes},
        {"pool size:", &BfcDump::pool_bytes},
        {"memory_limit_:", &BfcDump::limit_bytes},
        {"pool limit:", &BfcDump::limit_bytes},
        {"LargestFreeBlock:", &BfcDump::largest_free_bytes},
        {"InUse:", &BfcDump::in_use_bytes},
        {"Limit:", &BfcDump::limit_bytes},
    };
    bool known = false;
    for (const Figure& figure : kFigures) {
        const auto value = number_after(line, figure.label);
        // "MaxInUse:" is another figure.
        const std::size_t at = line.find(figure.label);
        if (value && (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t')) {
            set(&(dump_.*figure.value), value);
            known = true;
        }
    }
    return known || line.find("BFCAllocator dump for") != std::string_view::npos ||
           line.find("Bin (") != std::string_view::npos;
}

}  // namespace fragtrace::analyzer
