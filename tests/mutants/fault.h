// Which planted fault is active. scripts/mutants includes this file in every source in which it
// plants faults. MUTANT is the number of the fault. MUTANT_REACHED names a file with one byte for
// each fault. A program marks there every fault that it passes.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Two processors may both make the first call, with the same result. It is also used in recorded
// programs, so it neither allocates nor prints.
inline bool fragtrace_fault_at_run_time(int number) {
    static int chosen = -1;
    static unsigned char* reached = nullptr;
    if (chosen < 0) {
        const int before = errno;
        if (const char* path = getenv("MUTANT_REACHED"); path != nullptr) {
            const int file = open(path, O_RDWR | O_CLOEXEC);

            struct stat status {};

            if (file >= 0 && fstat(file, &status) == 0) {
                void* memory = mmap(nullptr,
                                    static_cast<size_t>(status.st_size),
                                    PROT_READ | PROT_WRITE,
                                    MAP_SHARED,
                                    file,
                                    0);
                reached = memory == MAP_FAILED ? nullptr : static_cast<unsigned char*>(memory);
            }
            if (file >= 0) {
                close(file);
            }
        }
        const char* text = getenv("MUTANT");
        chosen = text == nullptr ? 0 : atoi(text);
        errno = before;
    }
    if (reached != nullptr) {
        reached[number] = 1;
    }
    return chosen == number;
}

constexpr bool fragtrace_fault(int number) {
    return !__builtin_is_constant_evaluated() && fragtrace_fault_at_run_time(number);
}
