/* Prints what RTLD_NEXT finds from within the library "asker". */
#include <stdio.h>

int ask(const char* name);

int main(void) {
    printf("%d %d\n", ask("who"), ask("cudaFree"));
    return 0;
}
