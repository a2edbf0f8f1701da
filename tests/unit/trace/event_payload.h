// Payloads of kEvents chunks, as the recorder's codec writes them.
#pragma once

#include <fragtrace/codec.h>
#include <fragtrace/format.h>

#include <catch2/catch.hpp>

#include <cstdint>
#include <vector>

namespace fragtrace::testing {

inline std::vector<std::uint8_t> encoded(const std::vector<EventRecord>& records) {
    std::vector<std::uint8_t> scratch(event_scratch_bytes(records.size()));
    std::vector<std::uint8_t> bytes(scratch.size() + 200);
    ByteWriter out(bytes.data(), bytes.size());
    REQUIRE(encode_events([&](std::size_t i) -> const EventRecord& { return records[i]; },
                          records.size(),
                          scratch.data(),
                          scratch.size(),
                          &out));
    bytes.resize(out.size());
    return bytes;
}

}  // namespace fragtrace::testing
