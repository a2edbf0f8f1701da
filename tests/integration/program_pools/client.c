// A pool of 64 MiB in C: it divides memory from cudaMalloc into blocks and reports them. Without an
// argument it makes no CUDA call. With "fork", a child goes on with its parent's pool. With
// "pause", recording stops for a while. "names" creates more pools than are kept, "limits" changes
// limits often, and "long" has a long name.
#include <fragtrace/mark.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMiB = 1 << 20, kPool = 64 * kMiB, kBlock = 8 * kMiB };

typedef int (*Malloc)(void** address, size_t bytes);

static char* allocate_memory(void) {
    void* cuda = dlopen("libcudart.so.13", RTLD_NOW);
    void* found = cuda == NULL ? NULL : dlsym(cuda, "cudaMalloc");
    Malloc allocate;
    void* address = NULL;
    *(void**)(&allocate) = found;
    return found == NULL || allocate(&address, kPool) != 0 ? NULL : address;
}

// Each has one block, and is destroyed. Pools that a program would not create: each has its own
// name.
static void create_many(char* memory) {
    for (int i = 0; i < 5000; ++i) {
        char name[32];
        snprintf(name, sizeof name, "request %d", i);
        const uint32_t pool = fragtrace_pool_create(name, "other");
        fragtrace_block_alloc(pool, memory + (size_t)i * 4096, 4096, 4096, 0);
        fragtrace_pool_destroy(pool);
    }
}

// A pool with the same limit each time it is created, and one whose limit grows.
static void change_limits(char* memory) {
    for (int i = 0; i < 1000; ++i) {
        const uint32_t pool = fragtrace_pool_create("again", "other");
        fragtrace_pool_limit(pool, kPool);
        fragtrace_block_alloc(pool, memory, 4096, 4096, 0);
        fragtrace_pool_destroy(pool);
    }
    const uint32_t seven = fragtrace_pool_create("seven", "other");
    const uint32_t many = fragtrace_pool_create("many", "other");
    fragtrace_block_alloc(seven, memory, 4096, 4096, 0);
    fragtrace_block_alloc(many, memory, 4096, 4096, 0);
    for (uint64_t i = 1; i <= 1000; ++i) {
        fragtrace_pool_limit(many, i * kMiB);
        fragtrace_pool_limit(seven, (i < 7 ? i : 7) * kMiB);
    }
}

// 199 bytes, and then a letter of two bytes that does not fit.
static void name_long(char* memory) {
    char name[300];
    memset(name, 'n', sizeof name);
    memcpy(name + 199, "\xc3\xa9", 2);
    name[sizeof name - 1] = '\0';
    fragtrace_block_alloc(fragtrace_pool_create(name, "other"), memory, 4096, 4096, 0);
}

int main(int count, char** words) {
    const char* mode = count > 1 ? words[1] : "";
    static char host[kBlock];
    char* memory = *mode == '\0' ? host : allocate_memory();
    if (memory == NULL) {
        return 1;
    }
    if (strcmp(mode, "names") == 0) {
        create_many(memory);
        return 0;
    }
    if (strcmp(mode, "limits") == 0) {
        change_limits(memory);
        return 0;
    }
    if (strcmp(mode, "long") == 0) {
        name_long(memory);
        return 0;
    }
    const uint32_t pool = fragtrace_pool_create("frame buffers", "rmm-pool");
    const uint32_t inner = fragtrace_pool_create("rows", "My Rows");
    fragtrace_pool_limit(pool, kPool);
    for (int i = 0; i < 8; ++i) {
        fragtrace_label_begin(i % 2 == 0 ? "even" : "odd");
        fragtrace_block_alloc(pool, memory + (size_t)i * kBlock, kBlock - 100, kBlock, 0);
        fragtrace_label_end();
    }
    fragtrace_block_alloc(inner, memory, 4096, 0, UINT64_MAX);  // in the first block
    fragtrace_block_alloc(pool, NULL, 4096, 4096, 0);           // no block
    if (strcmp(mode, "pause") == 0) {
        fragtrace_stop();
    }
    for (int i = 0; i < 8; i += 2) {
        fragtrace_block_free(pool, memory + (size_t)i * kBlock);
    }
    if (strcmp(mode, "pause") == 0) {
        fragtrace_start();
    }
    fragtrace_block_failed(pool, 2 * (uint64_t)kBlock, 0);
    fragtrace_block_label(pool, memory + kBlock, "kept");
    if (strcmp(mode, "fork") == 0) {
        const pid_t child = fork();
        if (child == 0) {
            if (allocate_memory() == NULL) {
                return 1;
            }
            fragtrace_block_alloc(pool, memory, kBlock, kBlock, 0);
            fragtrace_pool_destroy(pool);
            return 0;
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) {
            return 1;
        }
    }
    fragtrace_pool_destroy(inner);
    // A pool with the same name and kind gets the number of the destroyed one.
    const uint32_t again = fragtrace_pool_create("rows", "My Rows");
    printf("%d\n", again == inner && (pool == 0) == (inner == 0) && (pool == 0 || pool != inner));
    return 0;
}
