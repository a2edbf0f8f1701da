/* Calls on small stacks and on stacks that do not belong to the thread, and the stack use of a
 * call. The argument selects one. */
#include "client.h"

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

enum { kPaint = 0x5a };

/* The used part of a painted stack, in bytes. The stack grows down from its end. */
static size_t used_of(const unsigned char* stack, size_t bytes) {
    size_t untouched = 0;
    while (untouched < bytes && stack[untouched] == kPaint) {
        ++untouched;
    }
    return bytes - untouched;
}

static void note(const char* what, size_t bytes) {
    char path[4096];
    snprintf(path, sizeof path, "%s/notes", getenv("CLIENT_FOLDER"));
    FILE* file = fopen(path, "a");
    CHECK(file != NULL);
    fprintf(file, "%s: %zu bytes of stack\n", what, bytes);
    fclose(file);
}

static void alloc_and_free_here(void) {
    device_free(device_alloc(1000));
}

static void __attribute__((noinline)) alloc_and_free_there(void) {
    device_free(device_alloc(2000));
}

/* The recorder asks NVML who holds the memory. */
static void alloc_too_much(void) {
    void* address = NULL;
    CHECK(cudaMalloc(&address, (size_t)1 << 50) != 0);
}

static void* call(void* work) {
    (*(void (**)(void))work)();
    return NULL;
}

/* Runs `work` in a thread with a painted stack and returns the stack use, including the thread's
 * own. */
static size_t measure(void (*work)(void)) {
    enum { kBytes = 1 << 20 };

    unsigned char* stack = (unsigned char*)mmap(
        NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    memset(stack, kPaint, kBytes);
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, stack, kBytes) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, call, (void*)&work) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    const size_t used = used_of(stack, kBytes);
    munmap(stack, kBytes);
    return used;
}

static void nothing(void) {}

/* The limit is the one in preload/README.md, in addition to the virtual GPU's own stack use. */
static void measure_all(void) {
    enum { kMost = 12 * 1024 };

    const size_t thread_alone = measure(nothing);
    const size_t first = measure(alloc_and_free_here) - thread_alone;
    const size_t first_of_a_site = measure(alloc_and_free_there) - thread_alone;
    const size_t later = measure(alloc_and_free_here) - thread_alone;
    const size_t refused = measure(alloc_too_much) - thread_alone;
    note("a thread alone", thread_alone);
    note("the first call of the process", first);
    note("the first call of a call site", first_of_a_site);
    note("a call", later);
    note("a refused call", refused);
    CHECK(first <= kMost && first_of_a_site <= kMost && later <= kMost && refused <= kMost);
}

static void* small_thread(void* argument) {
    (void)argument;
    alloc_and_free_here();
    alloc_and_free_there();
    return NULL;
}

/* The first call of the process comes from a thread with the smallest stack there is. */
static void use_small_threads(void) {
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    const long least = sysconf(_SC_THREAD_STACK_MIN);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)least) == 0);
    for (int i = 0; i < 8; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, small_thread, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static ucontext_t g_main_context;
static ucontext_t g_contexts[8];

static void coroutine(int number) {
    for (int i = 0; i < 20; ++i) {
        void* address = device_alloc(512u * (size_t)(number + 1));
        swapcontext(&g_contexts[number], &g_main_context);
        device_free(address);
    }
}

static void use_coroutines(void) {
    enum { kBytes = 24 * 1024 };

    for (volatile int i = 0; i < 8; i = i + 1) {
        CHECK(getcontext(&g_contexts[i]) == 0);
        /* There is unmapped memory below: an overflow ends the program. */
        char* memory =
            (char*)mmap(NULL, kBytes + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        CHECK(mprotect(memory + 65536, kBytes, PROT_READ | PROT_WRITE) == 0);
        g_contexts[i].uc_stack.ss_sp = memory + 65536;
        g_contexts[i].uc_stack.ss_size = kBytes;
        g_contexts[i].uc_link = &g_main_context;
        makecontext(&g_contexts[i], (void (*)(void))coroutine, 1, i);
    }
    for (int round = 0; round < 21; ++round) {
        for (int i = 0; i < 8; ++i)
            CHECK(swapcontext(&g_main_context, &g_contexts[i]) == 0);
    }
}

static sigjmp_buf g_back;
static volatile int g_depth;

static void on_overflow(int number) {
    (void)number;
    siglongjmp(g_back, 1);
}

static int __attribute__((noinline)) recurse(int depth) {
    volatile char frame[512];
    frame[0] = (char)depth;
    g_depth = depth;
    if (depth % 64 == 0) alloc_and_free_here();
    return depth == INT_MAX ? 0 : recurse(depth + 1) + frame[0];
}

static void* overflow(void* argument) {
    (void)argument;
    static char alternate[65536];
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    CHECK(sigaltstack(&stack, NULL) == 0);
    for (volatile int i = 0; i < 3; ++i) {
        if (sigsetjmp(g_back, 1) == 0) recurse(1);
        alloc_and_free_there();
    }
    return NULL;
}

/* An endless recursion that a handler ends, sometimes within hooked calls. */
static void use_overflow_handler(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_overflow;
    action.sa_flags = SA_ONSTACK;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, overflow, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(g_depth > 64);
}

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "";
    if (strcmp(way, "measure") == 0) {
        measure_all();
    } else if (strcmp(way, "small-threads") == 0) {
        use_small_threads();
    } else if (strcmp(way, "coroutines") == 0) {
        use_coroutines();
    } else if (strcmp(way, "overflow") == 0) {
        use_overflow_handler();
    } else {
        say_and_die("which way?");
    }
    device_work(2);
    puts("done");
    return 0;
}
