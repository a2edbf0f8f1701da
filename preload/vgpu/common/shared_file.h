// Files in /dev/shm that virtual GPUs of several processes share. Each process that has such a file
// open holds a shared lock on its first byte. The kernel removes the lock when the process ends,
// however it ends. A file without this lock is left over and can be removed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fragtrace::vgpu {

constexpr const char* kSharedFolder = "/dev/shm";
constexpr const char* kNcclFiles = "fragtrace-nccl-";    // a communicator each (nccl_segment.h)
constexpr const char* kCardsFiles = "fragtrace-cards-";  // a set of cards each (card_book.h)

// Such a file begins with one of these numbers, or with zeros while it is made.
constexpr uint64_t kNcclMagic = 0x31006c63636e7466;   // "ftnccl", version 1
constexpr uint64_t kCardsMagic = 0x3164726163667466;  // "ftfcard1"

// Locks a byte of an open file, or unlocks it: `type` is F_RDLCK, F_WRLCK or F_UNLCK. The lock
// belongs to the open file, so it ends with its last descriptor. Returns false if another open file
// holds the byte (with `wait`, only if the file system has no such locks).
bool lock_byte(int descriptor, int64_t byte, short type, bool wait);

// Whether another open file holds a lock on this byte. `byte` < 0: on any byte.
bool is_locked(int descriptor, int64_t byte);

// Opens or creates the file of this name in kSharedFolder. It stays this user's own, and "in use"
// until the descriptor is closed. Returns -1 with `problem` if that fails.
int open_shared_file(const char* name, char* problem, size_t room);

bool is_shared_file(const char* name);  // whether it has the name of one

// Whether `name` in the open folder is such a file, belongs to this user, and nobody has it open.
// With `remove`, removes it; returns true if it is gone.
bool is_left_over(int folder, const char* name, bool remove);

// Removes this user's left over files from kSharedFolder.
void remove_left_over_files();

}  // namespace fragtrace::vgpu
