/* A program that exports functions of zstd and of libunwind, like TensorFlow: other versions, with
 * other contexts. The recorder must call its own functions. */
#include "client.h"

#define EXPORTED(name)      \
    void name(void);        \
    void name(void) {       \
        say_and_die(#name); \
    }
EXPORTED(ZSTD_compressCCtx)
EXPORTED(ZSTD_compress2)
EXPORTED(ZSTD_compressBegin)
EXPORTED(ZSTD_compressBlock)
EXPORTED(ZSTD_compressBound)
EXPORTED(ZSTD_createCCtx)
EXPORTED(ZSTD_estimateCCtxSize)
EXPORTED(ZSTD_initStaticCCtx)
EXPORTED(ZSTD_isError)
EXPORTED(ZSTD_resetCCtx_internal)
EXPORTED(ZSTD_trace_compress_begin)
EXPORTED(ZSTD_trace_compress_end)
EXPORTED(ZSTD_getCParams)
EXPORTED(ZSTD_XXH64)
EXPORTED(HUF_compress1X_usingCTable)
EXPORTED(FSE_buildCTable_wksp)
EXPORTED(unw_backtrace)
EXPORTED(unw_getcontext)
EXPORTED(unw_step)
EXPORTED(_Ux86_64_getcontext)
EXPORTED(_ULx86_64_init_local)
EXPORTED(_ULx86_64_step)
EXPORTED(_ULx86_64_init)
EXPORTED(_U_dyn_register)
EXPORTED(unw_backtrace2)
EXPORTED(lzma_stream_buffer_decode)

int main(void) {
    device_work(3000); /* enough calls for compressed chunks */
    puts("done");
    return 0;
}
