// Hooks of launches. They exist because a launch can fail for lack of memory (lazily loaded code,
// local memory, the printf buffer). A successful launch has almost no overhead here.
#include "hooks/hook_call.h"

namespace fragtrace::preload {

FT_HOOK_11(cuLaunchKernel, launched)
FT_HOOK_11(cuLaunchKernel_ptsz, launched)
FT_HOOK_4(cuLaunchKernelEx, launched)
FT_HOOK_4(cuLaunchKernelEx_ptsz, launched)
FT_HOOK_10(cuLaunchCooperativeKernel, launched)
FT_HOOK_10(cuLaunchCooperativeKernel_ptsz, launched)
FT_HOOK_6(cudaLaunchKernel, launched)
FT_HOOK_6(cudaLaunchKernel_ptsz, launched)
FT_HOOK_6(__cudaLaunchKernel, launched)
FT_HOOK_6(__cudaLaunchKernel_ptsz, launched)
FT_HOOK_3(cudaLaunchKernelExC, launched)
FT_HOOK_3(cudaLaunchKernelExC_ptsz, launched)
FT_HOOK_6(cudaLaunchCooperativeKernel, launched)
FT_HOOK_6(cudaLaunchCooperativeKernel_ptsz, launched)

}  // namespace fragtrace::preload
