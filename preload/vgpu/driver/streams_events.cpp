// Streams and events. Work completes when it is issued, except collectives that wait for their
// peers (pending_work.cpp), so most queries return "done". Events have a clock of their own that
// advances by a fixed step per kernel. Times are repeatable and never zero between two events, but
// they measure nothing.
#include "driver/capture.h"

namespace fragtrace::vgpu {
namespace {

constexpr uint64_t kKernelNs = 10000;
constexpr uint64_t kEventNs = 1000;

uint64_t g_clock_ns;

struct Event {
    static constexpr Kind kKind = Kind::kEvent;
    Object object;
    unsigned flags;
    bool recorded;
    uint64_t time_ns;
    uint64_t capture_id;
    NodeSet capture_leaves;
    WorkSet works;  // pending on the stream when the event was recorded
};

WorkSet g_default_works[kMaxDevices];  // of the default streams

bool waits_for_default_streams(const Stream& stream, int device) {
    return stream.device == device && (stream.flags & CU_STREAM_NON_BLOCKING) == 0;
}

// Adds what work on the stream waits for. The default streams wait for all blocking streams.
void add_works(WorkSet* to, CUstream handle) {
    const WorkSet* own = works_of(handle);
    if (own == nullptr) return;
    add(to, *own);
    const int64_t device = own - g_default_works;
    if (device < 0 || device >= kMaxDevices) return;
    for (const Stream* at = g_streams; at != nullptr; at = at->next) {
        if (waits_for_default_streams(*at, int(device))) add(to, at->works);
    }
}

CUresult record(Event* event, CUstream handle) {
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    clear(&event->capture_leaves);
    event->capture_id = 0;
    if (stream != nullptr && stream->capture.graph != nullptr) {
        event->capture_id = stream->capture.id;
        if (!copy(&event->capture_leaves, stream->capture.leaves)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    clear(&event->works);
    add_works(&event->works, handle);
    g_clock_ns += kEventNs;
    event->time_ns = g_clock_ns;
    event->recorded = true;
    return CUDA_SUCCESS;
}

Stream* origin_of(uint64_t capture_id) {
    for (Stream* at = g_streams; at != nullptr; at = at->next) {
        if (at->capture.id == capture_id && at->capture.origin) return at;
    }
    return nullptr;
}

// A stream that waits for an event of a capture joins that capture.
CUresult join_capture(Stream* stream, Event* event) {
    Stream* origin = origin_of(event->capture_id);
    if (origin == nullptr) return CUDA_SUCCESS;  // the capture has ended
    if (stream == nullptr) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (stream->capture.graph == nullptr) {
        stream->capture.graph = origin->capture.graph;
        stream->capture.id = origin->capture.id;
        stream->capture.mode = origin->capture.mode;
    }
    if (stream->capture.id != event->capture_id) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    return copy(&stream->capture.leaves, event->capture_leaves) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

static bool is_default(CUstream stream) {
    // the handles of the default streams: null, legacy, per-thread
    return reinterpret_cast<uintptr_t>(stream) <= 2;
}

Stream* g_streams;

CUresult require_stream(CUstream handle, Stream** stream) {
    *stream = is_default(handle) ? nullptr : as<Stream>(handle);
    if (*stream == nullptr && !is_default(handle)) return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

WorkSet* works_of(CUstream handle) {
    if (!is_default(handle)) {
        Stream* stream = as<Stream>(handle);
        return stream != nullptr ? &stream->works : nullptr;
    }
    Context* context = nullptr;
    return require_context(&context) == CUDA_SUCCESS ? &g_default_works[context->device] : nullptr;
}

bool stream_is_ready(CUstream handle) {
    WorkSet all{};
    add_works(&all, handle);
    const bool ready = complete(&all);
    clear(&all);
    return ready;
}

bool event_is_ready(CUevent handle) {
    Event* event = as<Event>(handle);
    return event == nullptr || complete(&event->works);
}

bool device_is_ready(int device) {
    bool ready = complete(&g_default_works[device]);
    for (Stream* at = g_streams; at != nullptr; at = at->next) {
        if (at->device == device && !complete(&at->works)) ready = false;
    }
    return ready;
}

void stop_capturing(Stream* stream) {
    clear(&stream->capture.leaves);
    stream->capture = Capture{};
}

bool is_capturing(CUstream handle) {
    const Stream* stream = is_default(handle) ? nullptr : as<Stream>(handle);
    return stream != nullptr && stream->capture.graph != nullptr;
}

GraphNode* capture_node(CUstream handle, CUgraphNodeType type) {
    if (!is_capturing(handle)) return nullptr;
    Stream* stream = as<Stream>(handle);
    GraphNode* node = append_node(stream->capture.graph, type, stream->capture.leaves);
    if (node == nullptr) return nullptr;
    clear(&stream->capture.leaves);
    add(&stream->capture.leaves, node);
    return node;
}

bool captured(CUstream stream, CUgraphNodeType type) {
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) g_clock_ns += kKernelNs;
    return capture_node(stream, type) != nullptr;
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Stream* stream = make<Stream>();
    if (stream == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    stream->id = g_next_id++;
    stream->device = context->device;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->next = g_streams;
    g_streams = stream;
    *out = reinterpret_cast<CUstream>(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* out, unsigned flags) {
    return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
    FT_ENTER();
    Stream* stream = as<Stream>(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    stop_capturing(stream);
    clear(&stream->works);
    for (Stream** at = &g_streams; *at != nullptr; at = &(*at)->next) {
        if (*at != stream) continue;
        *at = stream->next;
        break;
    }
    destroy(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle) {
    make_progress();
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (is_capturing(handle)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return stream_is_ready(handle) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream handle) {
    wait_a_moment();
    if (const CUresult result = cuStreamQuery(handle)) {
        if (result != CUDA_ERROR_NOT_READY) return result;
        wait_for(handle);
    }
    FT_ENTER();
    synchronised();
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream != nullptr ? stream->priority : 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned* flags) {
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream != nullptr ? stream->flags : 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = stream != nullptr ? stream->id : reinterpret_cast<uintptr_t>(handle);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* out) {
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    if (stream != nullptr) {
        context = stream->context;
    } else {
        FT_TRY(require_context(&context));
    }
    *out = reinterpret_cast<CUcontext>(context);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    if (stream == nullptr) FT_TRY(require_context(&context));
    *device = stream != nullptr ? stream->device : context->device;
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned) {
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(handle, &stream));
    Event* event = as<Event>(event_handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    WorkSet* works = works_of(handle);
    if (works != nullptr) add(works, event->works);
    return event->capture_id != 0 ? join_capture(stream, event) : CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr, size_t, unsigned) {
    FT_ENTER();
    Stream* stream = nullptr;
    return require_stream(handle, &stream);
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
    FT_ENTER();
    Stream* stream = nullptr;
    FT_TRY(require_stream(to, &stream));
    return require_stream(from, &stream);
}

CUresult cuEventCreate(CUevent* out, unsigned flags) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Event* event = make<Event>();
    if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    event->flags = flags;
    *out = reinterpret_cast<CUevent>(event);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
    FT_ENTER();
    Event* event = as<Event>(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    clear(&event->capture_leaves);
    clear(&event->works);
    destroy(event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
    FT_ENTER();
    return record(as<Event>(handle), stream);
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags) {
    FT_ENTER();
    if (flags == CU_EVENT_RECORD_EXTERNAL) captured(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    return record(as<Event>(handle), stream);
}

CUresult cuEventQuery(CUevent handle) {
    make_progress();
    FT_ENTER();
    Event* event = as<Event>(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture_id != 0 && origin_of(event->capture_id) != nullptr) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    return event_is_ready(handle) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle) {
    wait_a_moment();
    if (const CUresult result = cuEventQuery(handle)) {
        if (result != CUDA_ERROR_NOT_READY) return result;
        wait_for_event(handle);
    }
    FT_ENTER();
    synchronised();
    return CUDA_SUCCESS;
}

// An event shared by another process. Only its existence is shared: its work is always complete.
namespace {

struct EventTicket {
    char magic[16];
    uint64_t flags;
    char unused[40];
};

static_assert(sizeof(EventTicket) == sizeof(CUipcEventHandle));
constexpr EventTicket kEventTicket{"fragtrace-event", 0, ""};

}  // namespace

CUresult cuIpcGetEventHandle(CUipcEventHandle* out, CUevent handle) {
    FT_ENTER();
    const Event* event = as<Event>(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    constexpr unsigned kNeeded = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
    if (out == nullptr || (event->flags & kNeeded) != kNeeded) return CUDA_ERROR_INVALID_VALUE;
    EventTicket ticket = kEventTicket;
    ticket.flags = event->flags;
    memcpy(static_cast<void*>(out), &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* out, CUipcEventHandle handle) {
    EventTicket ticket{};
    memcpy(&ticket, static_cast<const void*>(&handle), sizeof ticket);
    if (memcmp(ticket.magic, kEventTicket.magic, sizeof ticket.magic) != 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return cuEventCreate(out, unsigned(ticket.flags));
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent first_handle, CUevent last_handle) {
    FT_ENTER();
    Event* first = as<Event>(first_handle);
    Event* last = as<Event>(last_handle);
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (first == nullptr || last == nullptr || !first->recorded || !last->recorded) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *milliseconds = float(int64_t(last->time_ns - first->time_ns)) * 1e-6F;
    return CUDA_SUCCESS;
}
