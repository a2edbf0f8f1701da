// Puts verdicts into words.
#pragma once

#include "analyzer/analysis/verdict/verdict.h"

#include <string>

namespace fragtrace::analyzer {

// The bytes in words, or "an unknown amount".
std::string device_free_text(const Verdict& verdict);

// One sentence: the requested bytes, the free bytes, and why these did not help.
// `free_memory_matters`: whether the sentence may say "despite free memory".
std::string verdict_sentence(const Verdict& verdict,
                             Outcome outcome,
                             bool free_memory_matters = true);
// The serving rung in words: the free memory, and why it did not help.
std::string verdict_explanation(const Verdict& verdict);

// For "stream_bound" and "other_pool": the place with most free memory among those that would have
// served the request. If none would, the place with most free memory. nullptr: no place is known.
const FreePlace* serving_place(const Verdict& verdict);
std::string stream_text(const FreePlace& place);  // "the default stream", "stream 0x55d0"
std::string pool_text(const FreePlace& place);    // "private pool 2", "the pool of small blocks"

}  // namespace fragtrace::analyzer
