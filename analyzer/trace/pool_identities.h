// Which pool a pool number stands for: the facts "pool.N" and "pool.N.*".
#pragma once

#include "analyzer/model/timeline.h"

#include <map>
#include <string>

namespace fragtrace::analyzer {

// By number; facts that cannot be understood give an entry that knows only its text.
std::map<std::uint32_t, PoolIdentity> pool_identities(
    const std::map<std::string, std::string>& facts);

}  // namespace fragtrace::analyzer
