// What a script says to the stand-in for CUDA that lies beneath the real allocator.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
// A card that reports `total_bytes` and has `capacity_bytes` left; addresses of segments in an
// order of AddressSpace. `refused` is called with each size that cudaMalloc could not serve.
void stub_set_card(std::uint64_t total_bytes,
                   std::uint64_t capacity_bytes,
                   int address_order,
                   std::uint64_t seed,
                   void (*refused)(std::size_t));
// All events recorded on the stream but the newest `keep` complete.
void stub_complete(void* stream, std::size_t keep);
// Every stream says from now on that it is being captured; 0 = none is.
void stub_set_capture(unsigned long long capture);
}
