/* All ways to start other programs; the argument selects one. Every process that made a CUDA call
 * has its own trace with all of its calls. */
#include "client.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char** environ;

static void wait_well(pid_t child) {
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

static volatile int g_stop;

static void* allocate_until_told(void* argument) {
    (void)argument;
    for (int i = 0; i < 300 || !g_stop; ++i) {
        if (i < 2000) {
            device_free(device_alloc(512u * (size_t)(1 + i % 100)));
        } else {
            usleep(100);
        }
    }
    return NULL;
}

static void use_vfork(char* self) {
    char* const arguments[] = {self, "work", NULL};
    device_work(5);
    for (int i = 0; i < 3; ++i) {
        const pid_t child = vfork();
        if (child == 0) {
            execve(self, arguments, environ);
            _exit(1);
        }
        wait_well(child);
        device_work(3);
    }
    const pid_t failing = vfork();
    if (failing == 0) {
        execve("/nonexistent", arguments, environ);
        _exit(0); /* shares the parent's memory: this exit must not end the parent's trace */
    }
    wait_well(failing);
    device_work(5);
}

static void use_spawn(char* self) {
    char* const arguments[] = {self, "work", NULL};
    device_work(5);
    for (int i = 0; i < 3; ++i) {
        pid_t child = 0;
        CHECK(posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0);
        device_work(3);
        wait_well(child);
    }
}

static void use_fork(void) {
    device_work(5);
    for (int i = 0; i < 3; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            device_work(7);
            if (i == 1) _exit(0);
            exit(0);
        }
        device_work(3);
        wait_well(child);
    }
}

/* Many children that live at the same time. */
static void fork_storm(void) {
    enum { kAtOnce = 40 };

    const char* text = getenv("STORMS");
    const int storms = text == NULL ? 1 : atoi(text);

    device_work(5);
    for (int storm = 0; storm < storms; ++storm) {
        pid_t children[kAtOnce];
        for (int i = 0; i < kAtOnce; ++i) {
            children[i] = fork();
            if (children[i] == 0) {
                device_work(7);
                exit(0);
            }
        }
        device_work(3);
        for (int i = 0; i < kAtOnce; ++i)
            wait_well(children[i]);
    }
}

/* Children forked while other threads are within hooked calls. They must neither hang nor leave a
 * file. They make no calls, because the virtual GPU's own locks are not repaired in them. */
static void fork_while_others_allocate(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) {
        CHECK(pthread_create(&threads[i], NULL, allocate_until_told, NULL) == 0);
    }
    for (int i = 0; i < 12; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            if (i % 2 == 0) _exit(0);
            exit(0);
        }
        wait_well(child);
    }
    g_stop = 1;
    for (int i = 0; i < 4; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    const pid_t child = fork();
    if (child == 0) {
        device_work(10);
        exit(0);
    }
    wait_well(child);
}

static void fork_before_first_call(void) {
    for (int i = 0; i < 4; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            device_work(4);
            exit(0);
        }
        wait_well(child);
    }
}

static int thread_like(void* argument) {
    (void)argument;
    return 0; /* it has no thread-local storage of its own, so it makes no calls */
}

/* Threads and processes started by the system call itself. */
static void use_clone(void) {
    static char stack[65536] __attribute__((aligned(16)));
    device_work(3);
    const int child = clone(thread_like,
                            stack + sizeof stack,
                            CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | SIGCHLD,
                            NULL);
    wait_well(child);
    device_work(3);
    const pid_t forked = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (forked == 0) {
        /* Continues without the C library's knowledge. Its calls work and are not recorded. */
        void* address = NULL;
        syscall(SYS_exit_group, cudaMalloc(&address, 4096) == 0 && cudaFree(address) == 0 ? 0 : 1);
    }
    wait_well(forked);
    device_work(3);
}

static void become_daemon(void) {
    device_work(3);
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t first = fork();
    if (first == 0) {
        CHECK(setsid() > 0);
        if (fork() != 0) _exit(0);
        CHECK(chdir("/") == 0);
        dup2(ends[1], 3); /* as daemons do: everything except the needed descriptors */
        closefrom(4);
        close(0), close(1), close(2);
        device_work(5);
        const char done = 'd';
        CHECK(write(3, &done, 1) == 1);
        exit(0);
    }
    close(ends[1]);
    wait_well(first);
    char done = 0;
    CHECK(read(ends[0], &done, 1) == 1 && done == 'd');
    CHECK(read(ends[0], &done, 1) == 0); /* waits until the daemon has ended */
}

static void exec_itself(char* self) {
    const char* left = getenv("EXEC_LEFT");
    const int count = left == NULL ? 3 : atoi(left);
    device_work(count + 1);
    if (count > 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", count - 1);
        setenv("EXEC_LEFT", number, 1);
        char* const arguments[] = {self, "exec", NULL};
        execv(self, arguments);
        _exit(1);
    }
}

/* Removes the preload for its children, which are then not recorded. The program itself still is.
 */
static void unset_preload(char* self) {
    (void)self;
    device_work(2);
    unsetenv("LD_PRELOAD");
    char* const arguments[] = {"/bin/sh", "-c", "echo \"preload: $LD_PRELOAD\"", NULL};
    pid_t child = 0;
    CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    wait_well(child);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes) == 0);
    device_free(device_alloc(100));
}

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "";
    signal(SIGALRM, SIG_DFL);
    if (strcmp(way, "work") == 0) {
        device_work(4);
    } else if (strcmp(way, "vfork") == 0) {
        use_vfork(argv[0]);
    } else if (strcmp(way, "spawn") == 0) {
        use_spawn(argv[0]);
    } else if (strcmp(way, "fork") == 0) {
        use_fork();
    } else if (strcmp(way, "fork-storm") == 0) {
        fork_storm();
    } else if (strcmp(way, "fork-while-others-allocate") == 0) {
        fork_while_others_allocate();
    } else if (strcmp(way, "fork-before") == 0) {
        fork_before_first_call();
    } else if (strcmp(way, "clone") == 0) {
        use_clone();
    } else if (strcmp(way, "daemon") == 0) {
        become_daemon();
    } else if (strcmp(way, "exec") == 0) {
        exec_itself(argv[0]);
    } else if (strcmp(way, "unset-preload") == 0) {
        unset_preload(argv[0]);
    } else {
        say_and_die("which way?");
    }
    puts("done");
    return 0;
}
