/* Calls every function of the hook table with arguments of zero, each in its own child, and prints
 * its result and whether errno was kept. Then it makes the calls of a real program. */
#include "client.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

typedef uint64_t (*Function)(uint64_t,
                             uint64_t,
                             uint64_t,
                             uint64_t,
                             uint64_t,
                             uint64_t,
                             uint64_t,
                             uint64_t,
                             uint64_t,
                             uint64_t);

static void* g_driver;
static void* g_runtime;

/* Functions of frameworks and exits do not belong to CUDA. */
static const char* const kNames[] = {
#define FT_DRIVER(symbol, base, since, stream, family, parameters) "d" #symbol,
#define FT_RUNTIME(symbol, since, family, parameters)              "r" #symbol,
#include "hooks/hooks.def"
};

static void call_in_child(const char* kind_and_name) {
    const char* name = kind_and_name + 1;
    Function function = NULL;
    void* symbol = dlsym(kind_and_name[0] == 'd' ? g_driver : g_runtime, name);
    if (symbol == NULL) {
        printf("%s: not there\n", name);
        return;
    }
    memcpy(&function, &symbol, sizeof function);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(20);
        errno = 77;
        const uint64_t result = function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        const int error = errno;
        /* The function itself may set errno, so errno is compared between the runs. */
        printf("%s: %d, errno %d\n", name, (int)result, error);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (status != 0) {
        printf("%s: status %d\n", name, status);
    }
}

int main(void) {
    g_driver = dlopen("libcuda.so.1", RTLD_NOW);
    g_runtime = dlopen("libcudart.so.13", RTLD_NOW);
    CHECK(g_driver != NULL && g_runtime != NULL);
    for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; ++i) {
        call_in_child(kNames[i]);
    }
    void* address = NULL;
    errno = 77;
    CHECK(cudaMalloc(&address, (size_t)1 << 60) != 0 && errno == 77);
    CHECK(cudaMalloc(&address, 1000) == 0 && errno == 77);
    log_call(kLogAlloc, address, 1000);
    errno = 78;
    log_call(kLogFree, address, 0);
    CHECK(cudaFree(address) == 0 && errno == 78);
    log_call(kLogFree, (void*)(uintptr_t)12345, 0); /* recorded before it can be known to fail */
    CHECK(cudaFree((void*)(uintptr_t)12345) != 0 && errno == 78);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes) == 0 && errno == 78);
    puts("errno was kept");
    return 0;
}
