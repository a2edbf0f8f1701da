// The environment variables with the settings of PyTorch's caching allocator.
#pragma once

namespace fragtrace {

struct PytorchVariable {
    char name[24];    // in place: a pointer would be relocated in every process
    int since_minor;  // the release 2.N that reads it first; 0 = every release
};

// The first one that is set, even if it is empty, has all settings. Seen on 2.6 and 2.15; a build
// for CUDA reads the name with HIP as well.
inline constexpr PytorchVariable kPytorchVariables[] = {
    {"PYTORCH_CUDA_ALLOC_CONF", 0},
    {"PYTORCH_HIP_ALLOC_CONF", 9},
    {"PYTORCH_ALLOC_CONF", 9},
};

}  // namespace fragtrace
