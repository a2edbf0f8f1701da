// What keeps a page below its most bytes. Each part of the file has a share of the bytes, and fewer
// rows if it needs more.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Makes a part of the file with at most `rows` rows. `make(rows)` makes it and its size() is in
// bytes. If it is larger than `room`, it is made again with fewer rows, but not below `least`.
template <typename Make>
auto within(std::size_t room, std::size_t rows, std::size_t least, Make make) {
    // A row needs a byte or more, nearly always: parts far too large are not made first.
    rows = std::min(rows, std::max(room, least));
    auto part = make(rows);
    while (part.size() > room && rows > least) {
        const double share = static_cast<double>(room) / static_cast<double>(part.size());
        // A little less than this share: rows that stay may need more bytes than others.
        rows = std::max(least, static_cast<std::size_t>(static_cast<double>(rows) * share * 0.97));
        part = make(rows);
    }
    return part;
}

// Rows of a column that are in the file.
struct KeptRows {
    static constexpr std::uint32_t kNone = 0xffffffffu;

    std::vector<std::uint32_t> rows;    // ascending
    std::vector<std::uint32_t> places;  // by row of the data: its row in the file; kNone = none

    [[nodiscard]] bool has(std::uint32_t row) const { return places[row] != kNone; }
};

// Keeps those of the rows for which `may_stay` holds, `most` at most: the ones with most weight.
KeptRows keep_rows(std::size_t rows,
                   std::size_t most,
                   const std::function<bool(std::uint32_t)>& may_stay,
                   const std::function<std::uint64_t(std::uint32_t)>& weight);

// The most bytes within each of `parts` equal parts of [0, end_ns]. So each value is at least the
// one of its time.
BytesOverTime most_of_parts(const BytesOverTime& memory, std::size_t parts, std::uint64_t end_ns);

// Neighbours of a lane that `joins` accepts become one range.
void merge_neighbours(std::vector<PagePhase>* phases,
                      const std::function<bool(const PagePhase&, const PagePhase&)>& joins);

inline constexpr std::size_t kMostLanes = 7;  // steps, and six nesting depths of threads

// If there are more phases, short neighbours of a lane become one range with their number and
// names. `phases` ascend by start. Outside the last lane those of a lane do not overlap.
void limit_phases(std::vector<PagePhase>* phases, std::size_t most);

// Leaves out the shortest times between two changes of a pool until at most `most` changes stay in
// all pools. Returns how many are left out.
std::size_t limit_changes(std::vector<PagePool>* pools, std::size_t most);

// A plane of the map with half of the columns and rows: means of four cells.
std::vector<std::uint8_t> halved(const std::vector<std::uint8_t>& plane,
                                 std::size_t columns,
                                 std::size_t rows);

// A text of at most `most` bytes, or its beginning and its length.
std::string shortened(const std::string& text, std::size_t most);
// The same for all texts of a value.
void shorten_texts(nlohmann::json& value, std::size_t most);
// At most so many bytes of JSON, as script_safe() writes it.
std::size_t json_bytes(const std::string& text);

}  // namespace fragtrace::analyzer
