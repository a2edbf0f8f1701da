// Verdicts in words for people.
#pragma once

#include "analyzer/analysis/verdict/verdict.h"

#include <string>

namespace fragtrace::analyzer {

// device_free_bytes for people.
std::string device_free_text(const Verdict& verdict);

// One sentence for people: what was asked, what was free, why it was of no use.
std::string verdict_sentence(const Verdict& verdict, Outcome outcome);
// The serving rung in words: what was free, and why it was of no use.
std::string verdict_explanation(const Verdict& verdict);

// Of "stream_bound" and "other_pool": the place with most free memory that would have served the
// request; nullptr: no place is known.
const FreePlace* serving_place(const Verdict& verdict);
std::string stream_text(const FreePlace& place);  // "the default stream", "stream 0x55d0"
std::string pool_text(const FreePlace& place);    // "private pool 2", "the pool of small blocks"

}  // namespace fragtrace::analyzer
