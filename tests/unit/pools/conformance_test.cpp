// Every pool of the registry under its default settings; bounds, whose blocks may move, place
// nothing.
#include "tests/unit/pools/conformance.h"

#include "analyzer/pools/registry/pool_registry.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

TEST_CASE("every known pool keeps what all pools promise") {
    for (const PoolDescription& pool : known_pools()) {
        if (pool.bound.empty()) {
            SECTION(std::string(pool.name)) {
                check_conformance(std::string(pool.name));
            }
        }
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
