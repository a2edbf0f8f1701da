// Settings and sizes as on a command line. The first line has the pool's settings. The next lines
// have the capacity, the memory of others, the request, the driver's page and the release of
// PyTorch.
#include "analyzer/pools/registry/pool_registry.h"
#include "tests/fuzz/harness.h"
#include "tests/support/made_up_traces.h"

#include <array>

using namespace fragtrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::array traces = {
        fuzz::save("pools", testing::private_pools_trace(1).bytes()),
        fuzz::save("expandable", testing::expandable_trace(1).bytes())};
    constexpr std::array options = {
        "--conf=", "--capacity=", "--context=", "--request=", "--driver-page=", "--torch-version="};
    fuzz::Input input(data, size);
    const std::uint8_t choice = input.byte();
    const auto& pools = analyzer::known_pools();
    std::vector<std::string> words = {
        "replay", traces[choice % 2], "--pool", std::string(pools[choice / 2 % pools.size()].name)};
    std::string_view texts = input.rest();
    for (const char* option : options) {
        const std::size_t end = texts.find('\n');
        words.push_back(option + std::string(texts.substr(0, end)));
        if (end == std::string_view::npos) {
            break;
        }
        texts.remove_prefix(end + 1);
    }
    fuzz::run(words);
    return 0;
}
