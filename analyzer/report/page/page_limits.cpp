#include "analyzer/report/page/page_limits.h"

#include "analyzer/support/units.h"

#include <array>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// "load", "load, step", "load, step, save, ...".
void add_name(const std::string& name, std::string* names) {
    constexpr std::size_t kMostNames = 3;
    std::size_t count = 1;
    for (std::size_t at = 0; at < names->size(); ++count) {
        const std::size_t end = std::min(names->find(", ", at), names->size());
        if (names->compare(at, end - at, name) == 0) {
            return;
        }
        at = end + (end < names->size() ? 2 : 0);
    }
    if (names->ends_with(", ...")) {
        return;
    }
    *names += count > kMostNames ? ", ..." : ", " + name;
}

}  // namespace

KeptRows keep_rows(std::size_t rows,
                   std::size_t most,
                   const std::function<bool(std::uint32_t)>& may_stay,
                   const std::function<std::uint64_t(std::uint32_t)>& weight) {
    KeptRows kept;
    for (std::uint32_t row = 0; row < rows; ++row) {
        if (may_stay(row)) kept.rows.push_back(row);
    }
    if (kept.rows.size() > most) {
        const auto cut = kept.rows.begin() + static_cast<std::ptrdiff_t>(most);
        std::nth_element(
            kept.rows.begin(), cut, kept.rows.end(), [&](std::uint32_t a, std::uint32_t b) {
                const std::uint64_t of_a = weight(a);
                const std::uint64_t of_b = weight(b);
                return of_a != of_b ? of_a > of_b : a < b;
            });
        kept.rows.resize(most);
        std::sort(kept.rows.begin(), kept.rows.end());
    }
    kept.places.assign(rows, KeptRows::kNone);
    for (std::uint32_t place = 0; place < kept.rows.size(); ++place)
        kept.places[kept.rows[place]] = place;
    return kept;
}

BytesOverTime most_of_parts(const BytesOverTime& memory, std::size_t parts, std::uint64_t end_ns) {
    const std::uint64_t width_ns = end_ns / std::max<std::size_t>(parts, 1) + 1;
    BytesOverTime result;
    std::uint64_t before = 0;  // the value at the start of the part
    for (std::size_t i = 0; i < memory.time_ns.size();) {
        const std::uint64_t part = memory.time_ns[i] / width_ns;
        std::uint64_t most = before;
        for (; i < memory.time_ns.size() && memory.time_ns[i] / width_ns == part; ++i) {
            before = memory.bytes[i];
            most = std::max(most, before);
        }
        result.set(part * width_ns, most);
        const bool goes_on = i < memory.time_ns.size() && memory.time_ns[i] / width_ns == part + 1;
        if (!goes_on) result.set((part + 1) * width_ns, before);
    }
    return result;
}

void merge_neighbours(std::vector<PagePhase>* phases,
                      const std::function<bool(const PagePhase&, const PagePhase&)>& joins) {
    std::vector<PagePhase> merged;
    std::array<std::size_t, kMostLanes> last = {};  // of each lane: number of its last one, from 1
    for (PagePhase& phase : *phases) {
        std::size_t& at = last[phase.lane];
        if (at == 0 || !joins(merged[at - 1], phase)) {
            merged.push_back(std::move(phase));
            at = merged.size();
            continue;
        }
        PagePhase& before = merged[at - 1];
        before.end_ns = std::max(before.end_ns, phase.end_ns);
        before.count += phase.count;
        add_name(phase.name, &before.name);
    }
    *phases = std::move(merged);
}

void limit_phases(std::vector<PagePhase>* phases, std::size_t most) {
    if (phases->size() <= most) {
        return;
    }
    std::uint64_t end_ns = 0;
    for (const PagePhase& phase : *phases) {
        end_ns = std::max(end_ns, phase.end_ns == kNeverNs ? phase.start_ns : phase.end_ns);
    }
    const std::uint64_t begin_ns = phases->front().start_ns;
    // In a lane, few phases are longer than the width, and the others share few ranges of it.
    for (std::uint64_t width_ns = (end_ns - begin_ns) / most + 1; phases->size() > most;
         width_ns *= 2) {
        merge_neighbours(phases, [&](const PagePhase& before, const PagePhase& next) {
            const auto is_short = [=](const PagePhase& phase) {
                return std::min(phase.end_ns, end_ns) - phase.start_ns < width_ns;
            };
            return is_short(before) && is_short(next) &&
                   (before.start_ns - begin_ns) / width_ns == (next.start_ns - begin_ns) / width_ns;
        });
    }
}

std::size_t limit_changes(std::vector<PagePool>* pools, std::size_t most) {
    const auto count = [pools] {
        std::size_t changes = 0;
        for (const PagePool& pool : *pools)
            changes += pool.changes_ns.size();
        return changes;
    };
    const std::size_t all = count();
    for (std::uint64_t shortest_ns = 1; count() > most; shortest_ns *= 2) {
        for (PagePool& pool : *pools) {
            std::vector<std::uint64_t> kept;
            for (const std::uint64_t time_ns : pool.changes_ns) {
                // Two changes that follow each other cancel out.
                if (!kept.empty() && time_ns - kept.back() < shortest_ns) {
                    kept.pop_back();
                } else {
                    kept.push_back(time_ns);
                }
            }
            pool.changes_ns = std::move(kept);
            if (shortest_ns > kNeverNs / 4) pool.changes_ns.clear();
        }
    }
    return all - count();
}

std::vector<std::uint8_t> halved(const std::vector<std::uint8_t>& plane,
                                 std::size_t columns,
                                 std::size_t rows) {
    std::vector<std::uint8_t> result(columns / 2 * (rows / 2));
    for (std::size_t row = 0; row < rows / 2; ++row) {
        for (std::size_t column = 0; column < columns / 2; ++column) {
            const std::uint8_t* cell = &plane[2 * row * columns + 2 * column];
            const unsigned sum = cell[0] + cell[1] + cell[columns] + cell[columns + 1];
            result[row * (columns / 2) + column] = static_cast<std::uint8_t>((sum + 2) / 4);
        }
    }
    return result;
}

std::string shortened(const std::string& text, std::size_t most) {
    if (text.size() <= most) {
        return text;
    }
    std::size_t end = most;
    while (end > 0 && most - end < 3 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
        --end;
    return text.substr(0, end) + fmt::format("... (cut: {} bytes)", format_count(text.size()));
}

void shorten_texts(nlohmann::json& value, std::size_t most) {
    if (value.is_string()) {
        auto& text = value.get_ref<std::string&>();
        if (text.size() > most) text = shortened(text, most);
    } else if (value.is_structured()) {
        for (nlohmann::json& part : value)
            shorten_texts(part, most);
    }
}

std::size_t json_bytes(const std::string& text) {
    std::size_t bytes = 2;  // quotes
    for (const char c : text) {
        const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '<';
        bytes += plain ? 1 : 7;  // "\\u202e": the escape of an escape
    }
    return bytes;
}

}  // namespace fragtrace::analyzer
