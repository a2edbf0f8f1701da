// A library. The build removes its section .debug_aranges.
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
