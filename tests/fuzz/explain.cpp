// A log with messages of allocators that ran out of memory.
#include "tests/fuzz/harness.h"

using namespace fragtrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string path = fuzz::save("log", fuzz::Input(data, size).rest());
    fuzz::run({"explain", path});
    fuzz::run({"explain", path, "--json", "-"});
    return 0;
}
