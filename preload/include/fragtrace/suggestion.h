// "Did you mean": the known word that is nearest to a mistyped one. For both command lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace {

// The number of characters to insert, remove, replace or swap with their neighbour, to turn one
// word into the other (Damerau-Levenshtein, optimal string alignment). Time and memory: the product
// of both lengths.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> rows(a.size() + 1,
                                               std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            const std::size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            rows[i][j] = std::min({replaced, rows[i - 1][j] + 1, rows[i][j - 1] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
            }
        }
    }
    return rows[a.size()][b.size()];
}

// "; did you mean 'KNOWN'?", or nothing if no known word is near. Near means at most one change per
// three characters of the mistyped word (per two of a word of up to four), or that the word is the
// beginning of a single known one.
inline std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
    constexpr std::size_t kLongest = 40;  // longer words are no typing errors
    constexpr std::size_t kShort = 4;     // such as "rn" for "run" and "trie" for "try"
    const std::string* best = nullptr;
    std::size_t least = std::min(word.size(), kLongest) / (word.size() <= kShort ? 2 : 3) + 1;
    std::size_t beginnings = 0;
    for (const std::string& one : known) {
        if (word.size() > kLongest) {
            break;
        }
        beginnings += word.size() > 2 && one.starts_with(word) ? 1 : 0;
        if (const std::size_t distance = edit_distance(word, one); distance < least) {
            least = distance;
            best = &one;
        }
    }
    if (best == nullptr && beginnings == 1) {
        best = &*std::find_if(known.begin(), known.end(), [word](const std::string& one) {
            return one.starts_with(word);
        });
    }
    return best == nullptr ? std::string() : "; did you mean '" + *best + "'?";
}

}  // namespace fragtrace
