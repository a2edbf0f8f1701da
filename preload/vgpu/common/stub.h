/* Macros that the generated stubs use. A stub is weak: a function written by hand anywhere in
   the same library replaces it, so nobody has to maintain a list of finished functions. Its
   handler is hidden: an exported handler of the first stand-in loaded would answer for all
   stand-ins. */
#pragma once

#define FT_EXPORT __attribute__((visibility("default")))
#define FT_HIDDEN __attribute__((visibility("hidden")))

#ifdef __cplusplus
extern "C" {
#endif
/* Returns "not supported" and reports each name once if FRAGTRACE_VIRTUAL_GPU_DEBUG is 1. */
FT_HIDDEN int fragtrace_vgpu_unsupported(const char* name, unsigned char* said);
#ifdef __cplusplus
}
#endif

/* A stub declares no parameters: the calling convention lets a function ignore its arguments. */
#define FT_STUB(name)                                    \
    __attribute__((weak)) FT_EXPORT int name(void);      \
    int name(void) {                                     \
        static unsigned char said;                       \
        return fragtrace_vgpu_unsupported(#name, &said); \
    }

/* An alias for a name that differs from `target` only in the default stream. The stand-ins treat
   all default streams alike, so the alias is a plain jump. */
#if defined(__x86_64__)
#    define FT_JUMP "jmp"
#elif defined(__aarch64__)
#    define FT_JUMP "b"
#endif
#define FT_ALIAS(name, target)                                                           \
    __asm__(".text\n.weak " #name "\n.type " #name ", %function\n" #name ":\n\t" FT_JUMP \
            " " #target "\n.size " #name ", . - " #name "\n");

/* Defines `name` in an older version node, as a jump to `target`. */
#define FT_OLDER(symbol, target, name, node)                                                       \
    __asm__(".text\n.globl " #symbol "\n.type " #symbol ", %function\n.symver " #symbol ", " #name \
            "@" #node "\n" #symbol ":\n\t" FT_JUMP " " #target "\n.size " #symbol ", . - " #symbol \
            "\n");
