// Functions by which a script controls the stand-in for CUDA below the real allocator.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
// Sets a card that reports `total_bytes` and has `capacity_bytes` left. Segments get addresses in
// an order of AddressSpace. `refused` is called with each size that cudaMalloc could not serve.
void stub_set_card(std::uint64_t total_bytes,
                   std::uint64_t capacity_bytes,
                   int address_order,
                   std::uint64_t seed,
                   void (*refused)(std::size_t));
// Completes all events recorded on the stream except the newest `keep`.
void stub_complete(void* stream, std::size_t keep);
// From now on every stream reports that it is being captured. 0 = none is.
void stub_set_capture(unsigned long long capture);
}
