// <fragtrace/mark.h> in C: phases around allocations. Without an argument no CUDA call is made.
#include <fragtrace/mark.h>

#include <stdio.h>

typedef int (*Malloc)(void** address, size_t bytes);

int main(int count, char** arguments) {
    (void)arguments;
    fragtrace_range_begin("whole run");
    if (count > 1) {
        void* cuda = dlopen("libcudart.so.13", RTLD_NOW);
        void* found = cuda == NULL ? NULL : dlsym(cuda, "cudaMalloc");
        Malloc allocate;
        void* address = NULL;
        *(void**)(&allocate) = found;
        if (found == NULL || allocate(&address, 4096) != 0) {
            return 1;
        }
        fragtrace_range_begin("inner");
        fragtrace_label_begin("table");  // memory from the driver has no label
        fragtrace_mark("middle");
        if (allocate(&address, 8192) != 0) {
            return 1;
        }
        fragtrace_label_memory(address, "no block");
        fragtrace_label_end();
        fragtrace_label_end();  // one too many
        fragtrace_range_end();
    }
    fragtrace_range_end();
    printf("write %d\n", fragtrace_write());
    return 0;
}
