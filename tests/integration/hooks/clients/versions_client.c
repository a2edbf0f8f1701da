/* Queries several versions of one function from cuGetProcAddress. Each must have its own signature.
 */
#include "check.h"

#include <dlfcn.h>

typedef unsigned long long address_t;

int main(void) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(driver != NULL);
    int (*entry)(const char*, void**, int, unsigned long long, int*) =
        dlsym(driver, "cuGetProcAddress_v2");
    void* found = NULL;
    int status = -1;

    CHECK(entry("cuMemAlloc", &found, 2000, 0, &status) == 0 && status == 0);
    unsigned short_address = 0;
    CHECK(((int (*)(unsigned*, unsigned))found)(&short_address, 64) == 0 && short_address == 32);
    CHECK(found == dlsym(driver, "cuMemAlloc"));

    CHECK(entry("cuMemAlloc", &found, 12000, 0, &status) == 0 && status == 0);
    address_t address = 0;
    CHECK(((int (*)(address_t*, size_t))found)(&address, 4096) == 0);
    CHECK(entry("cuMemAlloc", &found, 3020, 2, NULL) == 0);
    address_t second = 0;
    CHECK(((int (*)(address_t*, size_t))found)(&second, 8192) == 0 && second == address + 4096);

    CHECK(entry("cuMemAlloc", &found, 99000, 0, &status) == 0 && status == 0);
    address_t third = 0;
    CHECK(((int (*)(address_t*, size_t, int))found)(&third, 1, 42) == 0 && third == 42);

    CHECK(entry("cuMemFree", &found, 12000, 0, &status) == 0);
    CHECK(((int (*)(address_t))found)(address) == 0);
    CHECK(entry("cuSomethingElse", &found, 12000, 0, &status) == 0 && found == NULL && status == 1);
    return 0;
}
