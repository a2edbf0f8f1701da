// Structures of graphs and of stream capture, shared by the files that implement them. The state
// lock protects all of it.
#pragma once

#include "driver/state.h"

namespace fragtrace::vgpu {

struct GraphNode;
struct GraphMemory;  // graph_memory.cpp

// A set of nodes that later work depends on.
struct NodeSet {
    GraphNode** nodes;
    int count;
};

void clear(NodeSet* set);
bool add(NodeSet* set, GraphNode* node);      // adds a node at most once
bool copy(NodeSet* to, const NodeSet& from);  // adds all nodes of `from`

struct UserObject {
    static constexpr Kind kKind = Kind::kUserObject;
    Object object;
    CUhostFn destroy;
    void* data;
    unsigned references;
};

struct UserReference {
    UserObject* object;
    unsigned count;
    UserReference* next;
};

struct Graph {
    static constexpr Kind kKind = Kind::kGraph;
    Object object;
    uint64_t id;
    GraphNode* first;
    GraphNode* last;
    int count;
    UserReference* users;
    bool has_memory_nodes;
    bool instantiated;  // only graphs with memory nodes: one executable graph at a time
};

struct GraphNode {
    static constexpr Kind kKind = Kind::kGraphNode;
    Object object;
    CUgraphNodeType type;
    Graph* graph;
    GraphNode* next;
    NodeSet dependencies;
    CUhostFn host_function;
    void* host_data;
    GraphMemory* memory;  // only memory nodes
};

// One step of an executable graph that allocates or frees memory.
struct MemoryStep {
    GraphMemory* memory;
    bool allocates;
};

struct MemorySteps {
    MemoryStep* steps;
    int count;
    Graph* graph;  // the source graph, if it still exists
    uint64_t graph_id;
};

GraphNode* append_node(Graph* graph, CUgraphNodeType type, const NodeSet& dependencies);
Graph* new_graph();
CUresult add_node(CUgraphNode* out,
                  CUgraph handle,
                  const CUgraphNode* dependencies,
                  size_t count,
                  CUgraphNodeType type);

// graph_memory.cpp: nodes that allocate and free memory. An executable graph keeps them in order,
// as steps.
CUresult add_allocation_node(CUgraphNode* out,
                             CUgraph graph,
                             const CUgraphNode* dependencies,
                             size_t count,
                             CUDA_MEM_ALLOC_NODE_PARAMS_v2* parameters);
CUresult add_free_node(CUgraphNode* out,
                       CUgraph graph,
                       const CUgraphNode* dependencies,
                       size_t count,
                       CUdeviceptr address);
void drop_memory(GraphNode* node);
CUresult take_steps(Graph* graph, MemorySteps* steps);
void drop_steps(MemorySteps* steps);
CUresult back_steps(const MemorySteps& steps, bool auto_free, bool run);

// Stream-ordered allocation and free on a stream that is being captured.
bool is_capturing(CUstream stream);
CUresult capture_allocation(CUdeviceptr* address, size_t bytes, const Pool& pool, CUstream stream);
CUresult capture_free(CUdeviceptr address, CUstream stream);

struct Capture {
    Graph* graph;  // null: not capturing
    uint64_t id;
    bool origin;  // the capture began on this stream
    CUstreamCaptureMode mode;
    NodeSet leaves;
};

struct Stream {
    static constexpr Kind kKind = Kind::kStream;
    Object object;
    uint64_t id;
    int device;
    unsigned flags;
    int priority;
    Context* context;
    Capture capture;
    WorkSet works;  // pending works, and those of the events that the stream waits for
    // list of all streams: the end of a capture must reach every stream that joined it
    Stream* next;
};

extern Stream* g_streams;

// Sets `stream` to null for the default streams. Returns an error if the handle is not a stream.
CUresult require_stream(CUstream handle, Stream** stream);

void stop_capturing(Stream* stream);

// The pending works of a stream; null if the handle is no stream, or if a default stream is meant
// and the thread has no context.
WorkSet* works_of(CUstream stream);
bool stream_is_ready(CUstream stream);
bool event_is_ready(CUevent event);
bool device_is_ready(int device);

// Adds a node for work on a stream that is being captured. Returns null if the stream is not
// capturing.
GraphNode* capture_node(CUstream stream, CUgraphNodeType type);

}  // namespace fragtrace::vgpu
