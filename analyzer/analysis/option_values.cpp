#include "analyzer/analysis/option_values.h"

#include "analyzer/pools/pytorch/pytorch_rules.h"
#include "analyzer/pools/registry/pool_registry.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

std::string pool_choices() {
    return pool_names();
}

std::string category_choices() {
    return fmt::format("{}", fmt::join(starter_names(), ", "));
}

bool is_category_choice(const std::string& name) {
    const std::vector<std::string> names = starter_names();
    return std::find(names.begin(), names.end(), name) != names.end();
}

Result<std::shared_ptr<const CategoryRules>> find_category_rules(const std::string& file) {
    if (file.empty()) {
        return std::shared_ptr<const CategoryRules>();
    }
    auto rules = read_category_rules(file);
    if (!rules) {
        return rules.error();
    }
    return std::make_shared<const CategoryRules>(std::move(rules).value());
}

bool is_torch_release(const std::string& text) {
    return PytorchRules::is_release(text);
}

}  // namespace fragtrace::analyzer
