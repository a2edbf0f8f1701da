// Frees memory when the program's own code has ended: in static destructors, atexit handlers,
// destructors of thread_local objects and of thread-specific data.
#include "client.h"

#include <pthread.h>
#include <thread>

namespace {

struct Owner {
    explicit Owner(size_t bytes) : address(device_alloc(bytes)) {}

    ~Owner() {
        device_free(address);
        device_free(device_alloc(64));  // a call site that is first used at the end
    }

    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    void* address;
};

Owner g_before_main(1000);
void* g_for_the_handler;

void at_exit() {
    device_free(g_for_the_handler);
    puts("atexit");
}

__attribute__((constructor(101))) void early() {
    device_free(device_alloc(111));
}

__attribute__((destructor(101))) void late() {
    device_free(device_alloc(222));
}

void free_specific(void* address) {
    device_free(address);
}

}  // namespace

int main() {
    static Owner in_main(2000);
    thread_local Owner of_main_thread(3000);
    g_for_the_handler = device_alloc(4000);
    CHECK(atexit(at_exit) == 0);
    (void)in_main;
    (void)of_main_thread;
    pthread_key_t key = 0;
    CHECK(pthread_key_create(&key, free_specific) == 0);
    std::thread([key] {
        thread_local Owner of_thread(5000);
        (void)of_thread;
        pthread_setspecific(key, device_alloc(6000));
    }).join();
    puts("main ends");
    return 0;
}
