// The book of a set of cards that several processes share: who has taken how much of which card. It
// is a file in /dev/shm. Each process has a page of its own, which only it writes, and holds a lock
// on that page's byte. The kernel removes the lock when the process ends or executes another
// program. A page without a lock counts for nothing, and the next process takes it.
#pragma once

#include "common/config.h"
#include "common/shared_file.h"

#include <cstddef>
#include <cstdint>

namespace fragtrace::vgpu {

constexpr int kMostCardUsers = 512;

struct BookPage {
    int32_t process;              // 0: never used
    uint32_t pid_namespace;       // of that process id (inode); 0: not known
    uint64_t taken[kMaxDevices];  // by physical index of the card
};

struct CardBook {
    uint64_t magic;
    uint64_t total_bytes;  // of each card
    BookPage pages[kMostCardUsers];
};

// Bytes of the file that are locked, apart from the first one (shared_file.h).
constexpr int64_t kBookByte = 1;    // while a process compares and changes amounts
constexpr int64_t kPageBytes0 = 2;  // the byte of the first page

constexpr int64_t byte_of_page(int page) {
    return kPageBytes0 + page;
}

constexpr size_t kBookNameBytes = 96;
// The name of the book of config().cards, which must not be empty.
void name_of_book(char out[kBookNameBytes]);

// Of this process. It does not change. 0 if it is not known.
uint32_t this_pid_namespace();

struct CardUser {
    int process;  // 0: of another PID namespace, in which its id means another process
    uint64_t bytes;
};

// Shows each process that has taken memory of a card, as the book of config().cards says. Shows
// none if there is no book. Needs little stack, since a call of the recorder may end here.
void visit_card_users(int card, void (*visit)(const CardUser& user, void* data), void* data);

}  // namespace fragtrace::vgpu
