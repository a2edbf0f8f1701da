// A library whose section .debug_aranges is removed when it is built.
#include <cstdint>

namespace {
[[gnu::noinline]] std::uint64_t here() {
    return reinterpret_cast<std::uint64_t>(
        __builtin_extract_return_addr(__builtin_return_address(0)));
}
}  // namespace

extern "C" std::uint64_t fragtrace_without_aranges() {
    const std::uint64_t address = here();
    asm volatile("" ::: "memory");
    return address;
}
