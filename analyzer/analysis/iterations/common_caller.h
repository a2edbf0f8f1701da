// Distinguishes a loop of the program from a loop inside a single operation.
#pragma once

#include "analyzer/analysis/iterations/requests.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// True for a module's forward, by its Python name. The names are needed because PyTorch's snapshots
// omit the frames that call forward.
bool is_forward(std::string_view function);

// Code of an optimizer, in PyTorch or in a library. This is the only list of such files.
bool is_optimizer_file(std::string_view file);
bool is_optimizer_frame(const Timeline& timeline, const StackNode& node);

// Layers of a model recur as well as training steps do. The common caller of all requests of one
// stretch distinguishes them: layers share a module's call, an optimizer's step or the backward
// pass. Examines the stretch of median length among [starts[i], starts[i + 1]). These are positions
// of requests, counted from `offset`. If this stretch has no Python stacks, the result is true
// exactly if other requests have some.
bool lies_inside_an_operation(const Timeline& timeline,
                              const Requests& requests,
                              std::size_t offset,
                              const std::vector<std::uint32_t>& starts);

}  // namespace fragtrace::analyzer
