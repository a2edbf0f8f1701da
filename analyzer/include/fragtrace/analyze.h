// The analyzer as a library, libfraganalyze.so: what `fraganalyze` prints, for other programs.
//
//   char* error = NULL;
//   const char* trace = "train.myhost.4711.ftrace";
//   fraganalyze_report* report = fraganalyze_load(trace, NULL, NULL, 1, &error);
//   if (report == NULL) { fprintf(stderr, "%s\n", error); fraganalyze_free(error); return 2; }
//   char* json = fraganalyze_json(report, &error);
//   ...
//   fraganalyze_free(json);
//   fraganalyze_close(report);
//
// Errors. A function that fails returns NULL or -1 and stores one line of text in *error: what is
// wrong, where, and what to do. The caller frees it with fraganalyze_free(). `error` may be NULL.
// Other pointers may be NULL only where it says so. On success *error is not touched. No exception
// leaves the library, and it ends no process.
// Texts are UTF-8, end with a null byte, and belong to the caller: fraganalyze_free().
// Threads. All functions can be called from any thread. Calls for one report wait for each other.
// The library prints nothing, installs no signal handlers, and changes no file but those that it is
// told to write. Loading the trace of a killed process takes the rest of its events from the ring
// that the recorder left, as `fraganalyze` does.
// Later versions only add functions.
#ifndef FRAGTRACE_ANALYZE_H
#define FRAGTRACE_ANALYZE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

// The version of fragtrace, such as "0.1.0". Do not free it.
const char* fraganalyze_version(void);

// Frees a text of this library. NULL is allowed.
void fraganalyze_free(char* text);

// Reads a size as everywhere in fragtrace: "4 GiB", "16GB", "1073741824". Returns 0 or -1.
int fraganalyze_parse_size(const char* text, uint64_t* bytes, char** error);

// ---- reports ------------------------------------------------------------------------------------

typedef struct fraganalyze_report fraganalyze_report;

#define FRAGANALYZE_USUAL_EVENTS ((uint64_t)0)
#define FRAGANALYZE_ALL_EVENTS   (~(uint64_t)0)

// Reads and analyses a trace, or a memory snapshot of PyTorch.
//  capacity       the memory that the pool may use, such as "16GiB"; NULL: as recorded
//  torch_version  the release whose allocator rules are replayed, such as "2.6"; NULL: as recorded
//  whatif         1: also replay other settings, pools, cards and remedies, as a report does.
//                 0: skip these replays, which take longest; no remedy is known then
// The caller closes the report with fraganalyze_close().
fraganalyze_report* fraganalyze_load(
    const char* path, const char* capacity, const char* torch_version, int whatif, char** error);

// The same, with categories of your own.
//  categories     a file of rules, or the name of one that fragtrace brings, such as
//                 "transformers"; NULL: only the built-in categories. docs/categories.md describes
//                 the file
fraganalyze_report* fraganalyze_load_with(const char* path,
                                          const char* capacity,
                                          const char* torch_version,
                                          const char* categories,
                                          int whatif,
                                          char** error);

// The same, with a limit for the events in memory: about 75 bytes each, 140 with the page. The
// functions above have the limit FRAGANALYZE_USUAL_EVENTS. A longer trace is read in part, around
// failures, peaks and the end. The text and "events_read" in "source" of the JSON say so. The
// tables then have only this part; it begins, and goes on after each gap, with the allocations that
// are live there.
//  most_events    at least 100, FRAGANALYZE_USUAL_EVENTS (12,000,000 in this version), or
//                 FRAGANALYZE_ALL_EVENTS
fraganalyze_report* fraganalyze_load_events(const char* path,
                                            const char* capacity,
                                            const char* torch_version,
                                            const char* categories,
                                            int whatif,
                                            uint64_t most_events,
                                            char** error);

// NULL is allowed.
void fraganalyze_close(fraganalyze_report* report);

// The document of `fraganalyze TRACE --json`. docs/schema/report.json describes it.
char* fraganalyze_json(fraganalyze_report* report, char** error);

// What happened, which line of the program is responsible, and what to change: the first lines of
// the report, per device.
char* fraganalyze_verdict(fraganalyze_report* report, char** error);

// The whole report as text, without colours.
char* fraganalyze_text(fraganalyze_report* report, char** error);

// The document of `fraganalyze whatif --json`, with more replays than a report has. Reads the trace
// again. docs/schema/whatif.json describes it.
char* fraganalyze_whatif(fraganalyze_report* report, char** error);

// The document of `fraganalyze replay --json`: one replay of the recorded requests. Here it also
// has the iterations of culprits. docs/schema/replay.json describes it.
//  device    ordinal of the device in the recorded process
//  conf      settings of the pool, as in PYTORCH_CUDA_ALLOC_CONF; NULL: as recorded
//  capacity  as in fraganalyze_load()
//  pool      NAME or NAME:SETTINGS of a simulated pool; NULL: as recorded
char* fraganalyze_replay(fraganalyze_report* report,
                         unsigned device,
                         const char* conf,
                         const char* capacity,
                         const char* pool,
                         char** error);

// The page: one HTML document that needs no network. *bytes (may be NULL) is its length.
char* fraganalyze_page(fraganalyze_report* report, uint64_t* bytes, char** error);

// Writes the page into a file, completely or not at all. An existing file is replaced only if
// fraganalyze wrote it. Returns 0 or -1.
int fraganalyze_write_page(fraganalyze_report* report, const char* path, char** error);

// ---- tables -------------------------------------------------------------------------------------

// The structures of the Arrow C data interface (https://arrow.apache.org/docs/format/), which many
// libraries read without a copy.
#ifndef ARROW_C_DATA_INTERFACE
#    define ARROW_C_DATA_INTERFACE

#    define ARROW_FLAG_DICTIONARY_ORDERED 1
#    define ARROW_FLAG_NULLABLE           2
#    define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema** children;
    struct ArrowSchema* dictionary;
    void (*release)(struct ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    struct ArrowArray** children;
    struct ArrowArray* dictionary;
    void (*release)(struct ArrowArray*);
    void* private_data;
};

#endif

// Fills both structures with a table of the report: a struct with one child for each column. They
// stay valid after the report is closed. The caller calls `release` of both. Returns 0 or -1.
//  table  "blocks": one row for each block, with its life. A process without a caching pool has one
//                   for each allocation from the driver
//         "events": one row for each event that was read. Of a trace that was read as a whole,
//                   these are the events that `fraganalyze dump` lists
// docs/python.md describes the columns. A table has at most 2^32 rows.
int fraganalyze_table(fraganalyze_report* report,
                      const char* table,
                      struct ArrowSchema* schema,
                      struct ArrowArray* array,
                      char** error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
