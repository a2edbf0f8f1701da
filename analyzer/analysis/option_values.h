// Names of simulated pools and releases that a command line accepts.
#pragma once

#include <string>

namespace fragtrace::analyzer {

// The names of the pools, for help texts.
std::string pool_choices();

// True if the text is a release of PyTorch, such as "2.6".
bool is_torch_release(const std::string& text);

}  // namespace fragtrace::analyzer
