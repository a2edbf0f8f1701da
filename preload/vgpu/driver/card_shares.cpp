#include "driver/card_shares.h"

#include "common/card_book.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::vgpu {
namespace {

bool g_shared;
CardBook* g_book;
int g_descriptor = -1;
ino_t g_file;
dev_t g_device;
int g_page = -1;  // -1: this process has taken nothing yet
uint64_t g_taken[kMaxDevices];

// A program may close all its descriptors, and then open others with the same numbers.
bool has_its_descriptor() {
    struct stat file = {};
    return fstat(g_descriptor, &file) == 0 && file.st_ino == g_file && file.st_dev == g_device;
}

void close_book() {
    if (g_book == nullptr) return;
    munmap(g_book, sizeof(CardBook));
    if (has_its_descriptor()) close(g_descriptor);
    g_book = nullptr;
    g_descriptor = -1;
    g_page = -1;
}

// Nobody else changes the book meanwhile. If the process is killed, the kernel unlocks it, and no
// amount is half written.
class BookLock {
  public:
    BookLock() { (void)lock_byte(g_descriptor, kBookByte, F_WRLCK, true); }

    ~BookLock() { (void)lock_byte(g_descriptor, kBookByte, F_UNLCK, false); }

    BookLock(const BookLock&) = delete;
    BookLock& operator=(const BookLock&) = delete;
};

bool is_living(int page) {
    return page == g_page || is_locked(g_descriptor, byte_of_page(page));
}

bool anyone_lives() {
    for (int i = 0; i < kMostCardUsers; ++i) {
        if (g_book->pages[i].process != 0 && is_living(i)) return true;
    }
    return false;
}

// Takes a page that no living process has. The book must be locked.
bool take_page() {
    for (int i = 0; i < kMostCardUsers; ++i) {
        if (!lock_byte(g_descriptor, byte_of_page(i), F_WRLCK, false)) continue;
        BookPage& page = g_book->pages[i];
        for (int card = 0; card < kMaxDevices; ++card) {
            __atomic_store_n(&page.taken[card], g_taken[card], __ATOMIC_RELAXED);
        }
        __atomic_store_n(&page.pid_namespace, this_pid_namespace(), __ATOMIC_RELAXED);
        __atomic_store_n(&page.process, int32_t(getpid()), __ATOMIC_RELEASE);
        g_page = i;
        return true;
    }
    return false;
}

uint64_t sum_of_others(int card, bool only_living) {
    uint64_t sum = 0;
    for (int i = 0; i < kMostCardUsers; ++i) {
        const BookPage& page = g_book->pages[i];
        if (i == g_page || __atomic_load_n(&page.process, __ATOMIC_ACQUIRE) == 0) continue;
        const uint64_t bytes = __atomic_load_n(&page.taken[card], __ATOMIC_RELAXED);
        if (bytes != 0 && (!only_living || is_living(i))) sum += bytes;
    }
    return sum;
}

bool fits(int card, uint64_t bytes, uint64_t total) {
    const uint64_t others = sum_of_others(card, false);
    if (others <= total && bytes <= total - others) return true;
    const uint64_t living = sum_of_others(card, true);
    return living <= total && bytes <= total - living;
}

bool has_taken_anything() {
    uint64_t all = 0;
    for (const uint64_t bytes : g_taken)
        all |= bytes;
    return all != 0;
}

// Opens the book again in a child of fork, and if the program has closed its descriptor.
bool has_book() {
    if (!g_shared || (g_book != nullptr && has_its_descriptor())) return g_shared;
    close_book();
    char problem[256];
    g_shared = open_shares(problem, sizeof problem) == Sharing::kShared;
    if (g_shared && has_taken_anything()) {
        const BookLock lock;
        (void)take_page();
    }
    return g_shared;
}

}  // namespace

Sharing open_shares(char* problem, size_t room) {
    if (config().cards[0] == '\0') return Sharing::kAlone;
    if (g_book != nullptr) return Sharing::kShared;
    remove_left_over_files();
    char name[kBookNameBytes];
    name_of_book(name);
    const int descriptor = open_shared_file(name, problem, room);
    if (descriptor < 0) return Sharing::kAlone;
    struct stat file = {};
    // posix_fallocate reserves memory: a full file system is an error here and no SIGBUS later.
    const int error = posix_fallocate(descriptor, 0, sizeof(CardBook));
    void* mapped =
        error == 0 && fstat(descriptor, &file) == 0
            ? mmap(nullptr, sizeof(CardBook), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
            : MAP_FAILED;
    if (mapped == MAP_FAILED || !lock_byte(descriptor, kBookByte, F_WRLCK, true)) {
        snprintf(problem,
                 room,
                 "%s/%s: %s; it needs %zu bytes and locks of open files",
                 kSharedFolder,
                 name,
                 strerror(error != 0 ? error : errno),
                 sizeof(CardBook));
        if (mapped != MAP_FAILED) munmap(mapped, sizeof(CardBook));
        close(descriptor);
        return Sharing::kAlone;
    }
    g_book = static_cast<CardBook*>(mapped);
    g_descriptor = descriptor;
    g_file = file.st_ino;
    g_device = file.st_dev;
    const uint64_t total = config().card.total_bytes;
    if (!anyone_lives()) g_book->total_bytes = total;
    const uint64_t of_others = g_book->total_bytes;
    __atomic_store_n(&g_book->magic, kCardsMagic, __ATOMIC_RELEASE);
    (void)lock_byte(descriptor, kBookByte, F_UNLCK, false);
    g_shared = of_others == total;
    if (g_shared) return Sharing::kShared;
    snprintf(problem,
             room,
             "the cards that are shared as '%s' have %llu bytes, not %llu: give all processes the "
             "same card, or another shared=NAME",
             config().cards,
             static_cast<unsigned long long>(of_others),
             static_cast<unsigned long long>(total));
    close_book();
    return Sharing::kRefused;
}

bool set_share(int card, uint64_t bytes, uint64_t total) {
    uint64_t& taken = g_taken[card];
    const bool shared = has_book();
    if (shared && bytes > taken) {
        const BookLock lock;
        if ((g_page < 0 && !take_page()) || !fits(card, bytes, total)) return false;
        taken = bytes;
        __atomic_store_n(&g_book->pages[g_page].taken[card], bytes, __ATOMIC_RELEASE);
        return true;
    }
    if (bytes > taken && bytes > total) return false;
    taken = bytes;
    if (shared && g_page >= 0) {
        __atomic_store_n(&g_book->pages[g_page].taken[card], bytes, __ATOMIC_RELEASE);
    }
    return true;
}

uint64_t taken_by_others(int card) {
    return has_book() ? sum_of_others(card, true) : 0;
}

void forget_shares() {
    close_book();
    memset(g_taken, 0, sizeof g_taken);
}

}  // namespace fragtrace::vgpu
