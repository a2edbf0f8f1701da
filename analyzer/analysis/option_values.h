// Names of simulated pools, releases and rule files that a command line accepts.
#pragma once

#include "analyzer/analysis/holders/category_rules.h"
#include "analyzer/support/result.h"

#include <memory>
#include <string>

namespace fragtrace::analyzer {

// The names of the pools, for help texts.
std::string pool_choices();

// The names of the rule files that fragtrace brings, for help texts.
std::string category_choices();
// Whether a rule file with this name comes with fragtrace.
bool is_category_choice(const std::string& name);
// The rules in a file, or in one that fragtrace brings. Null if `file` is empty.
Result<std::shared_ptr<const CategoryRules>> find_category_rules(const std::string& file);

// True if the text is a release of PyTorch, such as "2.6".
bool is_torch_release(const std::string& text);

}  // namespace fragtrace::analyzer
