// Graphs and the capture of streams into them: structures shared by streams_events.cpp and
// graphs.cpp, graph_launches.cpp. All of it under the state lock.
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
bool add(NodeSet* set, GraphNode* node);      // once each
bool copy(NodeSet* to, const NodeSet& from);  // adds all of from

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
    bool instantiated;  // of graphs with memory nodes: one executable graph at a time
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
    GraphMemory* memory;  // of memory nodes
};

// One step of an executable graph that changes what memory is live.
struct MemoryStep {
    GraphMemory* memory;
    bool allocates;
};

struct MemorySteps {
    MemoryStep* steps;
    int count;
    Graph* graph;  // the one it came from, if that still exists
    uint64_t graph_id;
};

GraphNode* append_node(Graph* graph, CUgraphNodeType type, const NodeSet& dependencies);
Graph* new_graph();
CUresult add_node(CUgraphNode* out,
                  CUgraph handle,
                  const CUgraphNode* dependencies,
                  size_t count,
                  CUgraphNodeType type);

// graph_memory.cpp: nodes that allocate and free. An executable graph keeps their order as steps.
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

// Stream-ordered calls on a stream that is capturing.
bool is_capturing(CUstream stream);
CUresult capture_allocation(CUdeviceptr* address, size_t bytes, const Pool& pool, CUstream stream);
CUresult capture_free(CUdeviceptr address, CUstream stream);

struct Capture {
    Graph* graph;  // null: not capturing
    uint64_t id;
    bool origin;  // this stream began it
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
    Stream* next;  // all streams, so that the end of a capture reaches those that joined it
};

extern Stream* g_streams;

// Null for the default streams, an error for what is no stream.
CUresult require_stream(CUstream handle, Stream** stream);

void stop_capturing(Stream* stream);

// The node a piece of captured work became, or null if the stream is not capturing.
GraphNode* capture_node(CUstream stream, CUgraphNodeType type);

}  // namespace fragtrace::vgpu
