/* Gets the functions that CUDA 13 changed from the runtime, in the version node named by the
 * argument (11.0, 12 or 13). Checks that they write no more than that version's structures have
 * room for. The exit status is the number of failed checks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void check(int holds, const char* what) {
    printf("%s: %s\n", holds ? "ok" : "FAILED", what);
    if (!holds) ++failures;
}

static void* library;
static char node[32];

static void* get(const char* name) {
    void* found = dlvsym(library, name, node);
    check(found != NULL, name);
    if (found == NULL) exit(99);
    return found;
}

/* How many bytes a function wrote into a structure. */
static size_t written(const unsigned char* bytes, size_t room) {
    while (room > 0 && bytes[room - 1] == 0xa5)
        --room;
    return room;
}

int main(int argc, char** argv) {
    if (argc != 2) return 98;
    const int major = atoi(argv[1]);
    char file[32];
    snprintf(node, sizeof node, "libcudart.so.%s", argv[1]);
    snprintf(file, sizeof file, "%s", node);
    library = dlopen(file, RTLD_NOW);
    check(library != NULL, file);
    if (library == NULL) return 97;

    int (*version)(int*) = (int (*)(int*))get("cudaRuntimeGetVersion");
    int value = 0;
    check(version(&value) == 0 && value / 1000 == major, "the version of that major");

    unsigned char bytes[2048];
    memset(bytes, 0xa5, sizeof bytes);
    const char* name = major == 12 ? "cudaGetDeviceProperties_v2" : "cudaGetDeviceProperties";
    int (*properties)(void*, int) = (int (*)(void*, int))get(name);
    check(properties(bytes, 0) == 0 && strstr((char*)bytes, "virtual") != NULL, "properties");
    const size_t size = major == 11 ? 728 : major == 12 ? 1032 : 1008;
    check(written(bytes, sizeof bytes) == size, "properties are as large as that version's");
    int processors = 0;
    memcpy(&processors, bytes + (major < 13 ? 388 : 384), sizeof processors);
    check(processors == 108, "the multiprocessors are where that version has them");

    void* device = NULL;
    int (*allocate)(void**, size_t) = (int (*)(void**, size_t))get("cudaMalloc");
    check(allocate(&device, 4096) == 0, "an allocation");
    memset(bytes, 0xa5, sizeof bytes);
    int (*attributes)(void*, const void*) =
        (int (*)(void*, const void*))get("cudaPointerGetAttributes");
    check(attributes(bytes, device) == 0 && bytes[0] == 2, "attributes of a pointer");
    check(written(bytes, sizeof bytes) == (major < 13 ? 24 : 88), "as large as that version's");

    void* graph = NULL;
    void* exec = NULL;
    int (*create)(void**, unsigned) = (int (*)(void**, unsigned))get("cudaGraphCreate");
    check(create(&graph, 0) == 0, "a graph");
    void* instantiate = get("cudaGraphInstantiate");
    char log[8] = "unread";
    const int result =
        major == 11 ? ((int (*)(void**, void*, void**, char*, size_t))instantiate)(
                          &exec, graph, NULL, log, sizeof log)
                    : ((int (*)(void**, void*, unsigned long long))instantiate)(&exec, graph, 0);
    check(result == 0 && exec != NULL, "an executable graph");
    check(major != 11 || log[0] == '\0', "the log of version 11 is empty");
    int (*release)(void*) = (int (*)(void*))get("cudaFree");
    check(release(device) == 0, "a free");
    return failures;
}
