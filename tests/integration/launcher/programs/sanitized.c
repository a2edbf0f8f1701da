/* Built with gcc's address sanitizer. "overflow" writes beyond a block, "cuda" allocates on a GPU,
 * and "shell COMMAND" runs a command. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int allocate(void) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL) {
        return 3;
    }
    int failed = ((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
    void* context = NULL;
    failed |= ((int (*)(void**, unsigned, int))dlsym(driver, "cuCtxCreate_v2"))(&context, 0, 0);
    for (int i = 0; i < 20 && failed == 0; ++i) {
        unsigned long long address = 0;
        failed |=
            ((int (*)(unsigned long long*, size_t))dlsym(driver, "cuMemAlloc_v2"))(&address, 4096);
        failed |= ((int (*)(unsigned long long))dlsym(driver, "cuMemFree_v2"))(address);
    }
    return failed;
}

int main(int argc, char** argv) {
    char* block = malloc(8);
    int status = 0;
    printf("up\n");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "overflow") == 0) {
        block[7 + argc] = 1;
    } else if (argc > 1 && strcmp(argv[1], "cuda") == 0) {
        status = allocate();
    } else if (argc > 2) {
        status = system(argv[2]) >> 8;
    }
    free(block);
    return status;
}
