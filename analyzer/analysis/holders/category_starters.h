// The rule files that fragtrace brings: their texts are compiled in, so that they are found however
// fragtrace is installed. The definitions are generated from starters/*.rules.
#pragma once

#include <span>
#include <string_view>

namespace fragtrace::analyzer {

struct CategoryStarter {
    std::string_view name;  // such as "transformers"
    std::string_view text;  // the content of the file
};

std::span<const CategoryStarter> category_starters();

}  // namespace fragtrace::analyzer
