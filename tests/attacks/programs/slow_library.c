/* A library whose constructor takes three seconds, during which the loader's lock is locked. */
#include <unistd.h>

__attribute__((constructor)) static void be_slow(void) {
    sleep(3);
}
