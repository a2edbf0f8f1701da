// The function that written_by_clang.s calls.
namespace written_by_clang {

unsigned long address() {
    return reinterpret_cast<unsigned long>(
        __builtin_extract_return_addr(__builtin_return_address(0)));
}

}  // namespace written_by_clang
