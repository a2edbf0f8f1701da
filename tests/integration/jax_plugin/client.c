/* Loads a library with an allocator, as Python loads JAX's, and fragments its pool of 64 MiB:
 *
 *     client LIBRARY
 *
 * Prints whether a request of 8 MiB failed at the end, and whether errno changed. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

typedef void* (*Create)(size_t limit);
typedef void* (*Allocate)(void* allocator, size_t bytes, int with_attributes);
typedef void (*Release)(void* allocator, void* address);
typedef void (*Destroy)(void* allocator);

enum { kMiB = 1 << 20, kBlocks = 16 };

int main(int count, char** words) {
    void* library = count > 1 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        puts(dlerror());
        return 1;
    }
    Create create;
    Allocate allocate;
    Release release;
    Destroy destroy;
    *(void**)(&create) = dlsym(library, "create");
    *(void**)(&allocate) = dlsym(library, "allocate");
    *(void**)(&release) = dlsym(library, "release");
    *(void**)(&destroy) = dlsym(library, "destroy");
    errno = 7;
    void* pool = create(64 * (size_t)kMiB);
    void* blocks[kBlocks];
    for (int i = 0; i < kBlocks; ++i) {
        blocks[i] = allocate(pool, 4 * kMiB - 100, i % 2);
    }
    for (int i = 0; i < kBlocks; i += 2) {
        release(pool, blocks[i]);
    }
    release(pool, NULL);
    const int failed = allocate(pool, 8 * kMiB, 1) == NULL && allocate(pool, 0, 1) == NULL;
    void* second = create(1 << 20);
    const int served = allocate(second, 1, 0) != NULL;
    destroy(second);
    printf("%d %d\n", failed && served, errno);
    return 0;
}
