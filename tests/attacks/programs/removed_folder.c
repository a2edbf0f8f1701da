/* Removes its output folder with the traces and continues. The folder must stay removed. */
#include "client.h"

#include <dirent.h>

static void remove_folder(const char* path) {
    DIR* folder = opendir(path);
    CHECK(folder != NULL);
    for (struct dirent* entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] != '.') {
            CHECK(unlinkat(dirfd(folder), entry->d_name, 0) == 0);
        }
    }
    closedir(folder);
    usleep(400000); /* time in which a recorder that creates its trace again would be noticed */
    CHECK(rmdir(path) == 0);
}

int main(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/traces", getenv("CLIENT_FOLDER"));
    device_work(1000);
    usleep(300000);
    device_work(1000);
    remove_folder(path);
    for (int i = 0; i < 10; ++i) {
        device_work(500);
        usleep(100000);
    }
    CHECK(access(path, F_OK) != 0);
    puts("done");
    return 0;
}
