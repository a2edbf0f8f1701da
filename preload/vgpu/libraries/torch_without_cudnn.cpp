// Switches cuDNN off inside PyTorch. The virtual cuDNN's workspaces follow a model (cudnn.h), and
// PyTorch's peaks should not depend on it. The two functions below are found before PyTorch's
// own. They answer "is cuDNN enabled?" always with no, so a program cannot switch it on. PyTorch
// then uses its native convolutions, which need other amounts of memory than cuDNN's.
#include "common/stub.h"

extern "C" {

// bool at::Context::userEnabledCuDNN() const
FT_EXPORT bool torch_cudnn(const void*) __asm__("_ZNK2at7Context16userEnabledCuDNNEv");
// bool at::Context::userEnabledCuDNNSDP() const
FT_EXPORT bool torch_cudnn_attention(const void*) __asm__("_ZNK2at7Context19userEnabledCuDNNSDPEv");

bool torch_cudnn(const void*) {
    return false;
}

bool torch_cudnn_attention(const void*) {
    return false;
}

}  // extern "C"
