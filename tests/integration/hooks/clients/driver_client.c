/* Uses the driver API like programs without a CUDA runtime: libcuda.so.1 by dlopen, functions by
 * dlsym ("dlsym") or only by cuGetProcAddress ("entry"). Prints every result. */
#include "check.h"

#include <dlfcn.h>
#include <string.h>

typedef unsigned long long address_t;

static int (*init)(unsigned);
static int (*retain)(void**, int);
static int (*release)(int);
static int (*set_current)(void*);
static int (*mem_alloc)(address_t*, size_t);
static int (*mem_free)(address_t);
static int (*mem_info)(size_t*, size_t*);
static int (*reserve)(address_t*, size_t, size_t, address_t, unsigned long long);
static int (*address_free)(address_t, size_t);
static int (*create)(address_t*, size_t, const void*, unsigned long long);
static int (*release_handle)(address_t);
static int (*map)(address_t, size_t, size_t, address_t, unsigned long long);
static int (*unmap)(address_t, size_t);
static int (*retain_handle)(address_t*, void*);

struct function {
    void* pointer;
    const char* symbol;
    const char* base;
    int version;
};

static const struct function kFunctions[] = {
    {&init, "cuInit", "cuInit", 2000},
    {&retain, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", 7000},
    {&release, "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease", 11000},
    {&set_current, "cuCtxSetCurrent", "cuCtxSetCurrent", 4000},
    {&mem_alloc, "cuMemAlloc_v2", "cuMemAlloc", 3020},
    {&mem_free, "cuMemFree_v2", "cuMemFree", 12000},
    {&mem_info, "cuMemGetInfo_v2", "cuMemGetInfo", 13000},
    {&reserve, "cuMemAddressReserve", "cuMemAddressReserve", 10020},
    {&address_free, "cuMemAddressFree", "cuMemAddressFree", 10020},
    {&create, "cuMemCreate", "cuMemCreate", 12000},
    {&release_handle, "cuMemRelease", "cuMemRelease", 10020},
    {&map, "cuMemMap", "cuMemMap", 10020},
    {&unmap, "cuMemUnmap", "cuMemUnmap", 10020},
    {&retain_handle, "cuMemRetainAllocationHandle", "cuMemRetainAllocationHandle", 11000},
};

static void find_functions(void* driver, int by_entry_point) {
    int (*old_entry)(const char*, void**, int, unsigned long long) = NULL;
    int (*entry)(const char*, void**, int, unsigned long long, int*) =
        dlsym(driver, "cuGetProcAddress_v2");
    CHECK(entry != NULL);
    if (by_entry_point) {
        /* Like cudart: every later request goes through the function found here. */
        void* again = NULL;
        CHECK(entry("cuGetProcAddress", &again, 12000, 0, NULL) == 0 && again != NULL);
        entry = again;
        CHECK(entry("cuGetProcAddress", &again, 11030, 0, NULL) == 0 && again != NULL);
        old_entry = again;
        CHECK(entry("", &again, 0, 0, NULL) != 12345); /* a test call, which must not crash */
    }
    for (size_t i = 0; i < sizeof kFunctions / sizeof *kFunctions; ++i) {
        const struct function* function = &kFunctions[i];
        void* found = NULL;
        if (!by_entry_point) {
            found = dlsym(driver, function->symbol);
        } else if (i % 2 == 0) {
            CHECK(entry(function->base, &found, function->version, 0, NULL) == 0);
        } else {
            CHECK(old_entry(function->base, &found, function->version, 0) == 0);
        }
        CHECK(found != NULL);
        memcpy(function->pointer, &found, sizeof found);
    }
    CHECK(dlsym(driver, "cuNoSuchFunction") == NULL && dlerror() != NULL);
    int status = 0;
    void* none = NULL;
    const int result = entry("cuNoSuchFunction", &none, 12000, 0, &status);
    printf("unknown %d %d %p\n", result, status, none);
}

static void linear_memory(void) {
    address_t first = 1;
    address_t second = 2;
    address_t untouched = 3;
    CHECK(KEEPS_ERRNO(mem_alloc(&first, 1 << 20)) == 0);
    CHECK(KEEPS_ERRNO(mem_alloc(&second, 3 << 20)) == 0);
    printf("alloc %llx %d\nalloc %llx %d\n", first, 1 << 20, second, 3 << 20);
    printf("zero bytes %d\n", KEEPS_ERRNO(mem_alloc(&untouched, 0)));
    printf("too much %d\n", KEEPS_ERRNO(mem_alloc(&untouched, (size_t)1 << 40)));
    CHECK(untouched == 3);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    CHECK(KEEPS_ERRNO(mem_info(&free_bytes, &total_bytes)) == 0);
    printf("info %zu %zu\n", free_bytes, total_bytes);
    printf("free nothing %d\n", KEEPS_ERRNO(mem_free(0)));
    CHECK(KEEPS_ERRNO(mem_free(second)) == 0);
    CHECK(KEEPS_ERRNO(mem_free(first)) == 0);
}

static void virtual_memory(void) {
    const size_t bytes = 2 << 20;

    /* type pinned, no handle types, location device 0; the rest is zero */
    struct {
        int type, handle_types, location_type, location_id;
        char rest[64];
    } properties = {1, 0, 1, 0, {0}};

    address_t range = 0;
    address_t handle = 0;
    address_t same = 0;
    CHECK(KEEPS_ERRNO(reserve(&range, 2 * bytes, 0, 0, 0)) == 0);
    CHECK(KEEPS_ERRNO(create(&handle, bytes, &properties, 0)) == 0);
    CHECK(KEEPS_ERRNO(map(range, bytes, 0, handle, 0)) == 0);
    printf("range %llx handle %llx\n", range, handle);
    if (retain_handle(&same, (void*)range) == 0) {
        printf("same handle %d\n", same == handle);
        CHECK(release_handle(same) == 0);
    }
    CHECK(KEEPS_ERRNO(unmap(range, bytes)) == 0);
    CHECK(KEEPS_ERRNO(release_handle(handle)) == 0);
    CHECK(KEEPS_ERRNO(address_free(range, 2 * bytes)) == 0);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(driver != NULL);
    find_functions(driver, strcmp(arguments[1], "entry") == 0);
    void* context = NULL;
    CHECK(init(0) == 0);
    CHECK(retain(&context, 0) == 0);
    CHECK(set_current(context) == 0);
    linear_memory();
    virtual_memory();
    CHECK(KEEPS_ERRNO(release(0)) == 0);
    return 7;
}
