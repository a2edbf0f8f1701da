/* What generated stubs expand to. A stub is weak: a function written by hand anywhere in the same
 * library replaces it, so no list of "done" names has to be kept. Its handler is hidden: were it
 * exported, the first stand-in loaded would answer for all of them. */
#pragma once

#define FT_EXPORT __attribute__((visibility("default")))
#define FT_HIDDEN __attribute__((visibility("hidden")))

#ifdef __cplusplus
extern "C" {
#endif
/* Returns "not supported"; says so once per name if FRAGTRACE_VIRTUAL_GPU_DEBUG is 1. */
FT_HIDDEN int fragtrace_vgpu_unsupported(const char* name, unsigned char* said);
#ifdef __cplusplus
}
#endif

/* Whatever the arguments are, the calling convention lets a function ignore them. */
#define FT_STUB(name)                                    \
    __attribute__((weak)) FT_EXPORT int name(void);      \
    int name(void) {                                     \
        static unsigned char said;                       \
        return fragtrace_vgpu_unsupported(#name, &said); \
    }

/* A name that differs in the default stream only, which is no difference here: a plain jump. */
#if defined(__x86_64__)
#    define FT_JUMP "jmp"
#elif defined(__aarch64__)
#    define FT_JUMP "b"
#endif
#define FT_ALIAS(name, target)                                                           \
    __asm__(".text\n.weak " #name "\n.type " #name ", %function\n" #name ":\n\t" FT_JUMP \
            " " #target "\n.size " #name ", . - " #name "\n");

/* The version of `name` in an older version node: a jump to its target. */
#define FT_OLDER(symbol, target, name, node)                                                       \
    __asm__(".text\n.globl " #symbol "\n.type " #symbol ", %function\n.symver " #symbol ", " #name \
            "@" #node "\n" #symbol ":\n\t" FT_JUMP " " #target "\n.size " #symbol ", . - " #symbol \
            "\n");
