/* Clears its environment before its first CUDA call, as programs do that protect themselves. The
 * argument says how. The trace must be where the user wanted it. */
#include "client.h"

#include <string.h>

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "";
    static char path[] = "PATH=/usr/bin:/bin";
    static char* variables[] = {path, NULL};
    open_log();
    if (strcmp(way, "clearenv") == 0) {
        CHECK(clearenv() == 0);
    } else if (strcmp(way, "own-list") == 0) {
        environ = variables;
    } else {
        /* setenv() copies the list, and clearenv() frees the copy. */
        CHECK(setenv("LANG", "C", 1) == 0 && setenv("ANOTHER", "1", 1) == 0 && clearenv() == 0);
        CHECK(setenv("LANG", "C", 1) == 0);
    }
    device_work(20);
    puts("done");
    return 0;
}
