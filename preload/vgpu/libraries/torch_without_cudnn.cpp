// Switches cuDNN off inside PyTorch. cuDNN carries its own CUDA runtime, which the virtual driver
// does not serve, so PyTorch must not choose it. These two definitions come before PyTorch's own:
// the question "may cuDNN be used" is answered with no whenever it is asked, and a program that
// switches cuDNN on changes nothing. PyTorch then takes its native convolutions, whose memory needs
// differ from cuDNN's.
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
