// Identifies the pool of each pool number from the facts "pool.N" and "pool.N.*".
#pragma once

#include "analyzer/model/timeline.h"

#include <map>
#include <string>

namespace fragtrace::analyzer {

// The pools by number. A fact that cannot be parsed gives an entry with only its text.
std::map<std::uint32_t, PoolIdentity> pool_identities(
    const std::map<std::string, std::string>& facts);

}  // namespace fragtrace::analyzer
