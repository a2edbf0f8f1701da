// Placement problems and plans.
#include "tests/fuzz/harness.h"

using namespace fragtrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string path = fuzz::save("problem.csv", fuzz::Input(data, size).rest());
    const std::string plan = path + ".plan";
    if (fuzz::run({"plan", path, "--output", plan}) && !fuzz::run({"validate", plan})) {
        __builtin_trap();  // our own plan must be valid
    }
    fuzz::run({"validate", path, "--capacity", "1MiB"});
    fuzz::run({"validate", path, "--json", "-"});
    return 0;
}
