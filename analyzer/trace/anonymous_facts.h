// What an anonymized trace keeps of facts and names.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// Replaces names by numbers: "function_1", "function_2", ...
class AnonymousNames {
  public:
    // Returns the same number for the same prefix and name.
    std::string numbered(const char* prefix, std::string_view name);

  private:
    std::map<std::string, std::map<std::string, std::size_t, std::less<>>> names_;
};

// The value that an anonymized trace has for this fact; an empty string if it must be left out.
// `is_setting`: the value consists of settings of an allocator.
std::string anonymous_fact(std::string_view key,
                           const std::string& value,
                           bool is_setting,
                           AnonymousNames* names);

}  // namespace fragtrace::analyzer
