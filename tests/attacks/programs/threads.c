/* The names and the number of threads that a program sees. The recorder's own thread, "fragtrace",
 * is the only additional one. It blocks every signal. */
#include "client.h"

#include <dirent.h>
#include <pthread.h>
#include <string.h>

static pthread_barrier_t g_barrier;

static void* work(void* name) {
    pthread_setname_np(pthread_self(), (const char*)name);
    device_work(20);
    pthread_barrier_wait(&g_barrier);
    pthread_barrier_wait(&g_barrier);
    return NULL;
}

static int compare(const void* left, const void* right) {
    return strcmp((const char*)left, (const char*)right);
}

static void read_line(const char* directory, const char* thread, const char* file, char* line) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", directory, thread, file);
    FILE* stream = fopen(path, "r");
    line[0] = '\0';
    if (stream != NULL) {
        if (fgets(line, 64, stream) != NULL) line[strcspn(line, "\n")] = '\0';
        fclose(stream);
    }
}

static void print_threads(void) {
    char names[64][64];
    size_t count = 0;
    int recorders = 0;
    DIR* tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent* task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        if (task->d_name[0] == '.') continue;
        read_line("/proc/self/task", task->d_name, "comm", names[count]);
        if (strcmp(names[count], "fragtrace") == 0) {
            ++recorders;
        } else {
            ++count;
        }
    }
    closedir(tasks);
    CHECK(recorders <= 1);
    qsort(names, count, sizeof names[0], compare);
    for (size_t i = 0; i < count; ++i)
        printf("%s\n", names[i]);
}

int main(void) {
    static const char* const names[] = {"one", "two", "three", "four"};
    pthread_t threads[4];
    CHECK(pthread_barrier_init(&g_barrier, NULL, 5) == 0);
    for (int i = 0; i < 4; ++i) {
        CHECK(pthread_create(&threads[i], NULL, work, (void*)names[i]) == 0);
    }
    pthread_barrier_wait(&g_barrier);
    print_threads();
    pthread_barrier_wait(&g_barrier);
    for (int i = 0; i < 4; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    device_work(1);
    return 0;
}
