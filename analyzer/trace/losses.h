// The recorder's counters of events that are missing in a trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fragtrace::analyzer {

// Parses a counter from a fact; 0 if the text is not a number.
std::uint64_t parse_count(const std::string& text);

struct Losses {
    std::uint64_t events_lost = 0;
    std::uint64_t events_unfinished = 0;  // started, never completed: the process died
};

Losses losses_of(const std::map<std::string, std::string>& facts);

// Updates `facts` from the ring, because counters in the ring are newer than those in the file.
void merge_losses(const std::map<std::string, std::string>& ring,
                  std::map<std::string, std::string>* facts);

}  // namespace fragtrace::analyzer
