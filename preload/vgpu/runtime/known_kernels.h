// Kernels of PyTorch of which the virtual GPU knows more than their launch. Object collectives need
// the results of a few: fills, sums, maxima and comparisons of a few integers, and torch.cat. These
// are computed, if the contents of their operands are known. Of the other elementwise kernels it
// knows that they write their first operand only.
#pragma once

#include "runtime/runtime.h"

namespace fragtrace::vgpu {

// Remembers a kernel if it is one of them. `name` is its mangled name.
void note_kernel_name(const void* function, const char* name);

// Does the launch's work if it is one of them and its parameters look as expected. Otherwise it is
// an ordinary launch.
bool compute_kernel(const void* function, dim3 grid, void** parameters, cudaStream_t stream);

}  // namespace fragtrace::vgpu
