#include "analyzer/analysis/option_values.h"

#include "analyzer/pools/pytorch/pytorch_rules.h"
#include "analyzer/pools/registry/pool_registry.h"

namespace fragtrace::analyzer {

std::string pool_choices() {
    return pool_names();
}

bool is_torch_release(const std::string& text) {
    return PytorchRules::is_release(text);
}

}  // namespace fragtrace::analyzer
