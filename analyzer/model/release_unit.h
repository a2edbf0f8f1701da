// What a pool can return to the driver. The figures of the report and the page use the same rule.
//
// A release unit is the smallest piece that a pool returns: a segment, or a page of an expandable
// segment. The pool can return a unit if no block lies in it, neither a live nor a pending one, and
// if pool_keeps_units() is false.
#pragma once

#include <cstdint>

namespace fragtrace::analyzer {

// `page_bytes` is 0 if the segment is not expandable.
constexpr std::uint64_t release_unit_bytes(std::uint64_t segment_bytes, std::uint64_t page_bytes) {
    return page_bytes != 0 ? page_bytes : segment_bytes;
}

// A private pool keeps its units as long as it has a user. 0 is the default pool.
constexpr bool pool_keeps_units(std::uint32_t private_pool, bool lost_its_users) {
    return private_pool != 0 && !lost_its_users;
}

}  // namespace fragtrace::analyzer
