/* Hand-written assembly whose unwind tables are wrong: they lead to addresses that are not mapped,
 * to pages that may not be read, or far past the stack. Each function calls cudaMalloc, so that its
 * stack is recorded, in a frame of a caller whose own table needs the registers. */
#include "client.h"

#include <signal.h>
#include <string.h>

typedef int Allocate(void** address, size_t bytes);

extern void* g_page; /* may not be read */
void* g_page;

#ifdef __x86_64__

/* A function that saves a register, sets it, and has `table` as its unwind table. */
#    define FUNCTION(name, saved, set, table)                             \
        extern Allocate name;                                             \
        asm(".text\n.globl " #name "\n.type " #name ", @function\n" #name \
            ":\n.cfi_startproc\n push %" saved "\n" set "\n" table        \
            "\n call cudaMalloc@PLT\n pop %" saved                        \
            "\n.cfi_def_cfa %rsp, 8\n ret\n.cfi_endproc\n.size " #name ", .-" #name "\n")

FUNCTION(far_frame, "rbx", "", ".cfi_def_cfa_offset 0x40000000");
FUNCTION(low_frame, "rbx", "mov $0x10, %rbx", ".cfi_def_cfa %rbx, 16");
FUNCTION(no_canonical_frame, "rbx", "movabs $0x7fffffffffff0000, %rbx", ".cfi_def_cfa %rbx, 16");
FUNCTION(low_frame_pointer, "rbp", "mov $0x10, %rbp", ".cfi_def_cfa %rbp, 16");
/* DW_CFA_def_cfa_expression: 0x40, then loads from it, again and again. */
FUNCTION(frame_by_loads, "rbx", "", ".cfi_escape 0x0f, 0x05, 0x08, 0x40, 0x06, 0x06, 0x06");
/* DW_CFA_expression: rbp is saved at 0x40. */
FUNCTION(saved_nowhere,
         "rbx",
         "",
         ".cfi_def_cfa_offset 16\n.cfi_escape 0x10, 0x06, 0x02, 0x08, 0x40");
/* The table does not say that rbp is saved and changed. The caller's table finds its frame by
 * loading a word at rbp. */
FUNCTION(forgotten_register, "rbp", "mov $0x1234, %rbp", ".cfi_def_cfa_offset 16");
FUNCTION(register_of_no_page, "rbp", "movabs $0x7fffffffffffff00, %rbp", ".cfi_def_cfa_offset 16");
FUNCTION(forbidden_page, "rbp", "mov g_page(%rip), %rbp", ".cfi_def_cfa_offset 16");

static Allocate* const kFunctions[] = {far_frame,
                                       low_frame,
                                       no_canonical_frame,
                                       low_frame_pointer,
                                       frame_by_loads,
                                       saved_nowhere,
                                       forgotten_register,
                                       register_of_no_page,
                                       forbidden_page};
#else
static Allocate* const kFunctions[] = {cudaMalloc};
#endif

static void allocate_by(Allocate* function) {
    void* address = NULL;
    CHECK(function(&address, 512) == 0);
    log_call(kLogAlloc, address, 512);
    device_free(address);
}

/* The compiler realigns the stack and keeps the frame's address in a word that rbp leads to. */
static int __attribute__((noinline))
realigned(Allocate* function, int bytes, long a, long b, long c, long d, long e, long f) {
    _Alignas(64) volatile char aligned[64];
    volatile char* sized = (volatile char*)__builtin_alloca((size_t)bytes);
    sized[0] = 1;
    aligned[0] = 1;
    allocate_by(function);
    return (int)(a + b + c + d + e + f) + aligned[0] - sized[0];
}

static void handle(int signal) {
    (void)signal;
    for (size_t i = 0; i < sizeof kFunctions / sizeof *kFunctions; ++i) {
        CHECK(realigned(kFunctions[i], 16, 0, 0, 0, 0, 0, 0) == 0);
    }
}

int main(void) {
    g_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(g_page != MAP_FAILED);
    const size_t bytes = 1 << 16;
    const stack_t other = {.ss_sp = malloc(bytes), .ss_size = bytes};
    CHECK(other.ss_sp != NULL && sigaltstack(&other, NULL) == 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_ONSTACK;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 3; ++i) {
        handle(0);
        CHECK(raise(SIGUSR1) == 0);
    }
    puts("done");
    return 0;
}
