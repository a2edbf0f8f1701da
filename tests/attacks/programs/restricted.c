/* A program with the limits named by the argument. They are set before its first CUDA call or, with
 * "later" as second argument, after some calls. */
#include "client.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <ucontext.h>

static void limit(int what, rlim_t most) {
    const struct rlimit limits = {most, most};
    CHECK(setrlimit(what, &limits) == 0);
}

/* Leaves no descriptor: the limit equals the number of open descriptors. */
static void take_all_descriptors(void) {
    limit(RLIMIT_NOFILE, 64);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
    }
    CHECK(errno == EMFILE);
}

static void take_address_space(void) {
    limit(RLIMIT_AS, (rlim_t)4 << 20); /* nothing more can be mapped */
}

static void close_streams(void) {
    close(0), close(1), close(2);
}

/* A file of the program becomes descriptor 2. */
static void reuse_standard_error(void) {
    close_streams();
    CHECK(open("/dev/null", O_RDWR) == 0 && open("/dev/null", O_RDWR) == 1);
    CHECK(open("data", O_RDWR | O_CREAT | O_TRUNC, 0600) == 2);
    CHECK(write(2, "data\n", 5) == 5);
}

/* Answers a system call that the sandbox does not allow. */
static void refuse_call(int signal, siginfo_t* what, void* context) {
    (void)signal;
    (void)what;
#ifdef __x86_64__
    ((ucontext_t*)context)->uc_mcontext.gregs[REG_RAX] = -EPERM;
#else
    ((ucontext_t*)context)->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#endif
}

static void handle_sandbox_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = refuse_call;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
}

static void drop_privileges(int with_root_folder) {
    const char* folder = getenv("CLIENT_FOLDER");
    CHECK(folder != NULL);
    if (with_root_folder) CHECK(chroot(folder) == 0 && chdir("/") == 0);
    CHECK(setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 &&
          setresuid(65534, 65534, 65534) == 0);
}

/* The calls that a sandbox allows after set-up: memory, open descriptors, time, exit. All others
 * return an error (or, as `action` says, end the process). */
static void enter_sandbox(unsigned action) {
    static const unsigned allowed[] = {SYS_read,
                                       SYS_write,
                                       SYS_pread64,
                                       SYS_pwrite64,
                                       SYS_close,
                                       SYS_fstat,
                                       SYS_mmap,
                                       SYS_munmap,
                                       SYS_mprotect,
                                       SYS_madvise,
                                       SYS_brk,
                                       SYS_futex,
                                       SYS_rt_sigprocmask,
                                       SYS_rt_sigreturn,
                                       SYS_rt_sigaction,
                                       SYS_clock_gettime,
                                       SYS_clock_nanosleep,
                                       SYS_getpid,
                                       SYS_gettid,
                                       SYS_sched_yield,
                                       SYS_exit,
                                       SYS_exit_group,
                                       SYS_newfstatat,
                                       SYS_lseek,
                                       SYS_getrandom,
#ifdef SYS_poll
                                       SYS_poll,
#endif
                                       SYS_ppoll};
    enum { kCount = sizeof allowed / sizeof allowed[0] };
    struct sock_filter filter[kCount + 3];
    filter[0] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < kCount; ++i) {
        filter[1 + i] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (uint8_t)(kCount - i), 0);
    }
    filter[kCount + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    filter[kCount + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {kCount + 3, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

static void restrict_as(const char* way) {
    if (strcmp(way, "no-descriptors") == 0) {
        take_all_descriptors();
    } else if (strcmp(way, "no-address-space") == 0) {
        take_address_space();
    } else if (strcmp(way, "no-file-size") == 0) {
        limit(RLIMIT_FSIZE, 0);
    } else if (strcmp(way, "little-file-size") == 0) {
        limit(RLIMIT_FSIZE, 16384);
    } else if (strcmp(way, "closed-streams") == 0) {
        close_streams();
    } else if (strcmp(way, "closed-descriptors") == 0) {
        closefrom(3);
    } else if (strcmp(way, "another-user") == 0) {
        drop_privileges(0);
    } else if (strcmp(way, "another-root") == 0) {
        drop_privileges(1);
    } else if (strcmp(way, "sandbox-that-refuses") == 0) {
        enter_sandbox(SECCOMP_RET_ERRNO | EPERM);
    } else if (strcmp(way, "sandbox-with-handler") == 0) {
        handle_sandbox_signals();
        enter_sandbox(SECCOMP_RET_TRAP);
    } else if (strcmp(way, "reused-standard-error") == 0) {
        reuse_standard_error();
    } else if (strcmp(way, "sandbox-that-kills") == 0) {
        enter_sandbox(SECCOMP_RET_KILL_PROCESS);
    } else if (strcmp(way, "another-folder") == 0) {
        CHECK(chdir("/proc") == 0);
    } else if (strcmp(way, "umask-and-locale") == 0) {
        umask(0777);
        (void)setlocale(LC_ALL, "");
    } else if (strcmp(way, "nothing") != 0) {
        say_and_die("which limit?");
    }
}

int main(int argc, char** argv) {
    const char* way = argc > 1 ? argv[1] : "";
    open_log();
    /* The virtual GPU maps its address space at the first call. */
    if (argc > 2 || strcmp(way, "no-address-space") == 0) {
        device_work(10);
        usleep(300000); /* the recorded events are then in the file, or wait in the ring */
    } else {
        int count = 0;
        CHECK(cudaGetDeviceCount(&count) == 0 && count == 2);
    }
    restrict_as(way);
    device_work(200);
    const int file =
        strcmp(way, "umask-and-locale") == 0 ? open("made", O_WRONLY | O_CREAT | O_EXCL, 0666) : -1;
    if (file >= 0) close(file);
    puts("done");
    return 0;
}
