#include "common/card_book.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::vgpu {

void name_of_book(char out[kBookNameBytes]) {
    snprintf(out,
             kBookNameBytes,
             "%s%u-%s-%d",
             kCardsFiles,
             unsigned(geteuid()),
             config().cards,
             virtual_host());
}

uint32_t this_pid_namespace() {
    struct stat file = {};
    return stat("/proc/self/ns/pid", &file) == 0 ? uint32_t(file.st_ino) : 0;
}

void visit_card_users(int card, void (*visit)(const CardUser& user, void* data), void* data) {
    char name[kBookNameBytes];
    char path[128];
    name_of_book(name);
    snprintf(path, sizeof path, "%s/%s", kSharedFolder, name);
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) return;
    struct stat file = {};
    const bool whole = fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode) &&
                       file.st_uid == geteuid() && file.st_size >= off_t(sizeof(CardBook));
    void* mapped =
        whole ? mmap(nullptr, sizeof(CardBook), PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
    if (mapped != MAP_FAILED) {
        const auto* book = static_cast<const CardBook*>(mapped);
        const uint32_t here = this_pid_namespace();
        for (int i = 0; i < kMostCardUsers; ++i) {
            const BookPage& page = book->pages[i];
            const int process = __atomic_load_n(&page.process, __ATOMIC_ACQUIRE);
            const uint64_t bytes = __atomic_load_n(&page.taken[card], __ATOMIC_RELAXED);
            if (process == 0 || bytes == 0 || !is_locked(descriptor, byte_of_page(i))) continue;
            const uint32_t there = __atomic_load_n(&page.pid_namespace, __ATOMIC_RELAXED);
            const bool elsewhere = here != 0 && there != 0 && here != there;
            visit({elsewhere ? 0 : process, bytes}, data);
        }
        munmap(mapped, sizeof(CardBook));
    }
    close(descriptor);
}

}  // namespace fragtrace::vgpu
