// What the recorder's counters say of events that are not in a trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fragtrace::analyzer {

// A counter as a fact has it; 0 for what is no number.
std::uint64_t parse_count(const std::string& text);

struct Losses {
    std::uint64_t events_lost = 0;
    std::uint64_t events_unfinished = 0;  // claimed, never completed: the process died
};

Losses losses_of(const std::map<std::string, std::string>& facts);

// Counters in the ring are newer than those in the file.
void merge_losses(const std::map<std::string, std::string>& ring,
                  std::map<std::string, std::string>* facts);

}  // namespace fragtrace::analyzer
