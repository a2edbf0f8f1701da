// Reads the JSON of fraganalyze for `fragtrace try`.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace fragtrace::launcher {

// 0 if the object has no such number.
inline std::uint64_t number(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || !found->is_number() ? 0 : found->get<std::uint64_t>();
}

// Empty if the object has no such text.
inline std::string text(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

// The device whose out-of-memory came first; without one, the first device.
inline const nlohmann::json& device_of(const nlohmann::json& report) {
    for (const nlohmann::json& device : report["devices"]) {
        if (!report["ooms"].empty() && device["index"] == report["ooms"][0]["device"]) {
            return device;
        }
    }
    return report["devices"][0];
}

}  // namespace fragtrace::launcher
