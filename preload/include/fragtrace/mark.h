// Marks phases of a program, labels its memory and reports the blocks of its own pools in its
// trace, for C and C++. Header only: there is nothing to link. Without the recorder, a call costs
// one load and one branch.
//
//   fragtrace_range_begin("epoch 1");   ranges of a thread are nested
//   ...
//   fragtrace_range_end();
//
//   { fragtrace::Range range("epoch 1"); ... }   the same in C++
//
//   fragtrace_label_begin("kv cache");   blocks that the thread allocates until the end of the
//   ...                                  label carry it; the innermost label counts
//   fragtrace_label_end();
//
//   uint32_t pool = fragtrace_pool_create("frames", "rmm-pool");   once for each pool
//   fragtrace_block_alloc(pool, pointer, requested, size, stream);
//   fragtrace_block_free(pool, pointer);
//   fragtrace_pool_destroy(pool);                                  its live blocks end, too
//
// Names are UTF-8 and are copied. They are cut at 4096 bytes, or at 106 bytes if the range begins
// before the recording does. A program should use at most about 4,000 different names: put
// iteration numbers into names only if they matter. All functions can be called from any thread at
// any time; they preserve errno and never fail. A range alone does not start a recording. Marks
// before the recording are lost.
//
// Link with -ldl if the C library is older than glibc 2.34.
#ifndef FRAGTRACE_MARK_H
#define FRAGTRACE_MARK_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The recorder's functions, looked up in the process at the first use. All are null without it.
struct fragtrace_functions {
    void (*range_begin)(const char* name);
    void (*range_end)(void);
    uint64_t (*range_start)(const char* name);
    void (*range_stop)(uint64_t range);
    void (*mark)(const char* name);
    void (*label_begin)(const char* label);
    void (*label_end)(void);
    void (*label_memory)(const void* address, const char* label);
    void (*mempool_name)(uint64_t first, uint64_t second, const char* name);
    uint32_t (*pool_create)(const char* name, const char* kind);
    void (*pool_destroy)(uint32_t pool);
    void (*pool_limit)(uint32_t pool, uint64_t limit);
    void (*block_alloc)(
        uint32_t pool, const void* pointer, uint64_t requested, uint64_t size, uint64_t stream);
    void (*block_free)(uint32_t pool, const void* pointer);
    void (*block_failed)(uint32_t pool, uint64_t requested, uint64_t stream);
    void (*block_label)(uint32_t pool, const void* pointer, const char* label);
    int (*start)(void);
    int (*stop)(void);
    int (*write)(void);
};

static inline const struct fragtrace_functions* fragtrace_find_functions(void) {
    static struct fragtrace_functions functions;
    static int looked_up;  // several threads may look them up at once; they find the same functions
    if (!__atomic_load_n(&looked_up, __ATOMIC_ACQUIRE)) {
        void* const in_process = NULL;  // RTLD_DEFAULT
        // POSIX: store a function's address through a pointer to an object.
        *(void**)(&functions.range_begin) = dlsym(in_process, "fragtrace_range_begin");
        *(void**)(&functions.range_end) = dlsym(in_process, "fragtrace_range_end");
        *(void**)(&functions.range_start) = dlsym(in_process, "fragtrace_range_start");
        *(void**)(&functions.range_stop) = dlsym(in_process, "fragtrace_range_stop");
        *(void**)(&functions.mark) = dlsym(in_process, "fragtrace_mark");
        *(void**)(&functions.label_begin) = dlsym(in_process, "fragtrace_label_begin");
        *(void**)(&functions.label_end) = dlsym(in_process, "fragtrace_label_end");
        *(void**)(&functions.label_memory) = dlsym(in_process, "fragtrace_label_memory");
        *(void**)(&functions.mempool_name) = dlsym(in_process, "fragtrace_mempool_name");
        *(void**)(&functions.pool_create) = dlsym(in_process, "fragtrace_pool_create");
        *(void**)(&functions.pool_destroy) = dlsym(in_process, "fragtrace_pool_destroy");
        *(void**)(&functions.pool_limit) = dlsym(in_process, "fragtrace_pool_limit");
        *(void**)(&functions.block_alloc) = dlsym(in_process, "fragtrace_block_alloc");
        *(void**)(&functions.block_free) = dlsym(in_process, "fragtrace_block_free");
        *(void**)(&functions.block_failed) = dlsym(in_process, "fragtrace_block_failed");
        *(void**)(&functions.block_label) = dlsym(in_process, "fragtrace_block_label");
        *(void**)(&functions.start) = dlsym(in_process, "fragtrace_start");
        *(void**)(&functions.stop) = dlsym(in_process, "fragtrace_stop");
        *(void**)(&functions.write) = dlsym(in_process, "fragtrace_write");
        __atomic_store_n(&looked_up, 1, __ATOMIC_RELEASE);
    }
    return &functions;
}

// Begins a range of the calling thread, nested inside the ranges that the thread began before.
static inline void fragtrace_range_begin(const char* name) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->range_begin != NULL) {
        recorder->range_begin(name);
    }
}

// Ends the innermost range of the calling thread.
static inline void fragtrace_range_end(void) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->range_end != NULL) {
        recorder->range_end();
    }
}

// Begins a range that any thread may end. Returns the range's number, 0 without the recorder.
static inline uint64_t fragtrace_range_start(const char* name) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    return recorder->range_start != NULL ? recorder->range_start(name) : 0;
}

static inline void fragtrace_range_stop(uint64_t range) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->range_stop != NULL) {
        recorder->range_stop(range);
    }
}

// Marks a moment.
static inline void fragtrace_mark(const char* name) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->mark != NULL) {
        recorder->mark(name);
    }
}

// From here on, blocks that the calling thread allocates carry this label: those of PyTorch's
// allocator and of pools (fragtrace_pool_create).
// Labels of a thread are nested, and the innermost one counts. Memory that the program
// allocates from the driver has no label.
static inline void fragtrace_label_begin(const char* label) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->label_begin != NULL) {
        recorder->label_begin(label);
    }
}

// Ends the innermost label of the calling thread. Blocks that have it keep it.
static inline void fragtrace_label_end(void) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->label_end != NULL) {
        recorder->label_end();
    }
}

// Labels the live block that begins at this device address, and replaces its label. Does nothing
// if no block begins there.
static inline void fragtrace_label_memory(const void* address, const char* label) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->label_memory != NULL) {
        recorder->label_memory(address, label);
    }
}

// Names a private pool of PyTorch's allocator (torch.cuda.MemPool, a pool of CUDA graphs) in
// reports. `first` and `second` are the two numbers of its id (MemPool.id). The last name counts,
// but a pool keeps its 7th name. Of `name`, the first 200 bytes are kept.
static inline void fragtrace_mempool_name(uint64_t first, uint64_t second, const char* name) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->mempool_name != NULL) {
        recorder->mempool_name(first, second, name);
    }
}

// The functions below report a pool that divides memory into blocks: which blocks it gave out, and
// which it got back. The memory itself is recorded anyway: the trace matches blocks with it by
// address. A pool of host memory that is not pinned leaves no events unless the process uses a GPU.
//
// Creates a pool and returns its number for the other functions; 0 = nothing is recorded, and the
// other functions then do nothing. `kind` names the algorithm of the pool: a name that
// `fraganalyze replay --pool` knows ("rmm-pool", "rmm-arena", "bfc", "cupy", "best-fit"), so that a
// report can compare with it, or "other". It is one word of at most 32 letters. Of `name`, the
// first 200 bytes are kept. A pool with the name and kind of a destroyed one is the same pool to
// the recorder, so its name should not contain a counter: there is room for about 1,000 different
// names and kinds in the life of a process (more if several live pools have the same ones). Further
// pools share one entry in the report, and their end is not recorded.
static inline uint32_t fragtrace_pool_create(const char* name, const char* kind) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    return recorder->pool_create != NULL ? recorder->pool_create(name, kind) : 0;
}

// The pool does not exist any more. Its live blocks end.
static inline void fragtrace_pool_destroy(uint32_t pool) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->pool_destroy != NULL) {
        recorder->pool_destroy(pool);
    }
}

// The most bytes that the pool may take from the driver; 0 = no limit. The last limit counts, also
// for a pool that is created again. After the 8th change, the limit is recorded as unknown.
static inline void fragtrace_pool_limit(uint32_t pool, uint64_t limit) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->pool_limit != NULL) {
        recorder->pool_limit(pool, limit);
    }
}

// Call it after the pool has allocated a block. `requested` is in bytes, as the program asked for
// (UINT64_MAX = unknown), `size` what the block takes in the pool; `stream` is the handle of the
// CUDA stream (0 = the default stream, UINT64_MAX = unknown).
static inline void fragtrace_block_alloc(
    uint32_t pool, const void* pointer, uint64_t requested, uint64_t size, uint64_t stream) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->block_alloc != NULL) {
        recorder->block_alloc(pool, pointer, requested, size, stream);
    }
}

// Call it before the block becomes free, so that no other thread gets its place before.
static inline void fragtrace_block_free(uint32_t pool, const void* pointer) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->block_free != NULL) {
        recorder->block_free(pool, pointer);
    }
}

// The pool could not serve a request.
static inline void fragtrace_block_failed(uint32_t pool, uint64_t requested, uint64_t stream) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->block_failed != NULL) {
        recorder->block_failed(pool, requested, stream);
    }
}

// Labels a live block of the pool, and replaces its label. Labels of threads
// (fragtrace_label_begin) reach blocks of pools, too.
static inline void fragtrace_block_label(uint32_t pool, const void* pointer, const char* label) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    if (recorder->block_label != NULL) {
        recorder->block_label(pool, pointer, label);
    }
}

// Start and stop recording. fragtrace_write() returns when all events so far are in a file. All
// three return 0 on success, and -1 if there is no recorder or nothing to start, stop or write.
static inline int fragtrace_start(void) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    return recorder->start != NULL ? recorder->start() : -1;
}

static inline int fragtrace_stop(void) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    return recorder->stop != NULL ? recorder->stop() : -1;
}

static inline int fragtrace_write(void) {
    const struct fragtrace_functions* recorder = fragtrace_find_functions();
    return recorder->write != NULL ? recorder->write() : -1;
}

#ifdef __cplusplus
}

namespace fragtrace {

// A range that lasts as long as the object. It must end on the thread that began it.
class Range {
  public:
    explicit Range(const char* name) { fragtrace_range_begin(name); }

    ~Range() { fragtrace_range_end(); }

    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
};

// A label that lasts as long as the object. It must end on the thread that began it.
class Label {
  public:
    explicit Label(const char* label) { fragtrace_label_begin(label); }

    ~Label() { fragtrace_label_end(); }

    Label(const Label&) = delete;
    Label& operator=(const Label&) = delete;
};

}  // namespace fragtrace
#endif

#endif
