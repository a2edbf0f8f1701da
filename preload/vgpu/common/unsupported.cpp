// Functions that are exported but not written return an ordinary "not supported".
#include "common/config.h"
#include "common/stub.h"

#include <stdio.h>
#include <unistd.h>

extern "C" int fragtrace_vgpu_unsupported(const char* name, unsigned char* said) {
    constexpr int kNotSupported = 801;  // both CUDA_ERROR_NOT_SUPPORTED and cudaErrorNotSupported
    if (fragtrace::vgpu::config().debug && __atomic_exchange_n(said, 1, __ATOMIC_RELAXED) == 0) {
        char line[160];
        const int length =
            snprintf(line, sizeof line, "fragtrace: the virtual GPU does not support %s\n", name);
        if (length > 0) (void)!write(2, line, static_cast<size_t>(length));
    }
    return kNotSupported;
}
