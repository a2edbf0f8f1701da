// Whether a loop is one of the program's own, or one inside of a single operation.
#pragma once

#include "analyzer/analysis/iterations/requests.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// A module's forward, by its Python name: PyTorch's snapshots leave out the frames that call it.
bool is_forward(std::string_view function);

// Code of an optimizer: PyTorch's, and those of libraries. The only list of them.
bool is_optimizer_file(std::string_view file);
bool is_optimizer_frame(const Timeline& timeline, const StackNode& node);

// The layers of a model recur as well as the steps of a training do. What all requests of one
// stretch have as their common caller tells them apart: a module's call, an optimizer's step, the
// backward pass. Asked of the stretch of median length among [starts[i], starts[i + 1]), positions
// of requests less `offset`. False where no stacks are known.
bool lies_inside_an_operation(const Timeline& timeline,
                              const Requests& requests,
                              std::size_t offset,
                              const std::vector<std::uint32_t>& starts);

}  // namespace fragtrace::analyzer
