/* A process that shares cards with others. It reads commands from standard input, one per line, and
 * answers each with one line:
 *   alloc BYTES   address or "refused"          free            frees the newest allocation
 *   random SEED   allocates and frees for ever  info            "FREE TOTAL", as cuMemGetInfo says
 *   nvml          "USED FREE PID:BYTES..."      reset           resets the primary context
 *   release       gives up the primary context  close           closes all descriptors from 3 on
 *   exec          becomes `sleep`               exit            ends
 *   fork, forkalloc BYTES                       a child that waits, or allocates and waits: its id,
 *                                               and a line of the child, in any order
 * The argument is the ordinal of the device. */
#include <cuda.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMostBlocks = 4096 };

struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

static CUdeviceptr blocks[kMostBlocks];
static int count;
static CUdevice device;

static void* nvml_function(const char* name) {
    static void* library;
    if (library == NULL) library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    return library == NULL ? NULL : dlsym(library, name);
}

static void nvml(void) {
    int (*init)(void) = (int (*)(void))nvml_function("nvmlInit_v2");
    int (*by_uuid)(const char*, void**) =
        (int (*)(const char*, void**))nvml_function("nvmlDeviceGetHandleByUUID");
    int (*memory_of)(void*, unsigned long long*) =
        (int (*)(void*, unsigned long long*))nvml_function("nvmlDeviceGetMemoryInfo");
    int (*list)(void*, unsigned*, struct process*) = (int (*)(
        void*, unsigned*, struct process*))nvml_function("nvmlDeviceGetComputeRunningProcesses_v3");
    CUuuid uuid;
    char text[48];
    void* handle = NULL;
    unsigned long long memory[3] = {0, 0, 0}; /* total, free, used */
    static struct process processes[1024];
    unsigned found = 1024;
    int length = snprintf(text, sizeof text, "GPU-");
    cuDeviceGetUuid(&uuid, device);
    for (int i = 0; i < 16; ++i) {
        length += snprintf(text + length,
                           sizeof text - (size_t)length,
                           "%s%02x",
                           i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                           (unsigned char)uuid.bytes[i]);
    }
    if (init() != 0 || by_uuid(text, &handle) != 0 || memory_of(handle, memory) != 0 ||
        list(handle, &found, processes) != 0) {
        printf("no NVML\n");
        return;
    }
    printf("%llu %llu", memory[2], memory[1]);
    for (unsigned i = 0; i < found; ++i)
        printf(" %u:%llu", processes[i].pid, processes[i].used);
    printf("\n");
}

static void alloc(size_t bytes) {
    CUdeviceptr address = 0;
    if (count == kMostBlocks || cuMemAlloc(&address, bytes) != CUDA_SUCCESS) {
        printf("refused\n");
        return;
    }
    blocks[count++] = address;
    printf("0x%llx\n", (unsigned long long)address);
}

static void churn(unsigned seed) {
    for (;;) {
        CUdeviceptr address = 0;
        seed = seed * 1103515245 + 12345;
        if ((seed >> 16 & 1) != 0 && count > 0) {
            cuMemFree(blocks[--count]);
        } else if (count < kMostBlocks &&
                   cuMemAlloc(&address, (size_t)(1 + (seed >> 20 & 31)) << 20) == CUDA_SUCCESS) {
            blocks[count++] = address;
        }
    }
}

static void child(const char* bytes) {
    const pid_t pid = fork();
    if (pid == 0) {
        CUdeviceptr address = 0;
        printf("%s\n",
               bytes == NULL                                                     ? "waits"
               : cuMemAlloc(&address, strtoull(bytes, NULL, 10)) == CUDA_SUCCESS ? "taken"
                                                                                 : "refused");
        fflush(stdout);
        for (;;)
            pause();
    }
    printf("%d\n", (int)pid);
}

int main(int argc, char** argv) {
    CUcontext context = NULL;
    char line[128];
    signal(SIGCHLD, SIG_IGN);
    const CUresult begun = cuInit(0);
    if (argc != 2 || begun != CUDA_SUCCESS || cuDeviceGet(&device, atoi(argv[1])) != CUDA_SUCCESS) {
        printf("no device: %d\n", (int)begun);
        return 1;
    }
    if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
        printf("no room for a context\n");
        return 2;
    }
    cuCtxSetCurrent(context);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char* value = strchr(line, ' ');
        if (strncmp(line, "alloc ", 6) == 0) {
            alloc(strtoull(value, NULL, 10));
        } else if (strcmp(line, "free") == 0) {
            printf("%d\n", count > 0 ? (int)cuMemFree(blocks[--count]) : -1);
        } else if (strncmp(line, "random ", 7) == 0) {
            printf("begins\n");
            fflush(stdout);
            churn((unsigned)atoi(value));
        } else if (strcmp(line, "info") == 0) {
            size_t free_bytes = 0;
            size_t total = 0;
            cuMemGetInfo(&free_bytes, &total);
            printf("%zu %zu\n", free_bytes, total);
        } else if (strcmp(line, "nvml") == 0) {
            nvml();
        } else if (strcmp(line, "reset") == 0) {
            printf("%d\n", (int)cuDevicePrimaryCtxReset(device));
            count = 0;
        } else if (strcmp(line, "release") == 0) {
            printf("%d\n", (int)cuDevicePrimaryCtxRelease(device));
            count = 0;
        } else if (strcmp(line, "fork") == 0) {
            child(NULL);
        } else if (strncmp(line, "forkalloc ", 10) == 0) {
            child(value);
        } else if (strcmp(line, "close") == 0) {
            for (int i = 3; i < 1024; ++i)
                close(i);
            printf("closed\n");
        } else if (strcmp(line, "exec") == 0) {
            printf("%d\n", (int)getpid());
            fflush(stdout);
            execlp("sleep", "sleep", "600", (char*)NULL);
        } else if (strcmp(line, "exit") == 0) {
            return 0;
        }
        fflush(stdout);
    }
    return 0;
}
