// What a command line may name of the simulated pools.
#pragma once

#include <string>

namespace fragtrace::analyzer {

// The names of the pools, for help texts.
std::string pool_choices();

// Whether the text is a release of PyTorch, such as "2.6".
bool is_torch_release(const std::string& text);

}  // namespace fragtrace::analyzer
