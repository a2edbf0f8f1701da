/* Three libraries for the order of symbol look-ups, chosen by FT_ROLE: "asker" uses RTLD_NEXT,
 * "mid" and "last" define the symbols. One name is in the hook table, the other is not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#ifdef FT_ASKER
int ask(const char* name) {
    int (*found)(void*) = dlsym(RTLD_NEXT, name);
    const int result = found == NULL ? -1 : found(NULL);
    return result;
}
#else
int cudaFree(void* address) {
    return address == NULL ? FT_ANSWER : 0;
}

int who(void* nothing) {
    return nothing == NULL ? FT_ANSWER : 0;
}
#endif
