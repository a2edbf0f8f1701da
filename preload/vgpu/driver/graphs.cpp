// Graphs: nodes with dependencies, enough for capture and inspection.
#include "driver/user_objects.h"

namespace fragtrace::vgpu {

void clear(NodeSet* set) {
    free(set->nodes);
    *set = NodeSet{};
}

bool add(NodeSet* set, GraphNode* node) {
    if (node == nullptr) return true;
    for (int i = 0; i < set->count; ++i) {
        if (set->nodes[i] == node) return true;
    }
    void* grown =
        realloc(static_cast<void*>(set->nodes), sizeof(GraphNode*) * size_t(set->count + 1));
    if (grown == nullptr) return false;
    set->nodes = static_cast<GraphNode**>(grown);
    set->nodes[set->count++] = node;
    return true;
}

bool copy(NodeSet* to, const NodeSet& from) {
    for (int i = 0; i < from.count; ++i) {
        if (!add(to, from.nodes[i])) return false;
    }
    return true;
}

Graph* new_graph() {
    Graph* graph = make<Graph>();
    if (graph != nullptr) graph->id = g_next_id++;
    return graph;
}

GraphNode* append_node(Graph* graph, CUgraphNodeType type, const NodeSet& dependencies) {
    GraphNode* node = make<GraphNode>();
    if (node == nullptr || !copy(&node->dependencies, dependencies)) return nullptr;
    node->type = type;
    node->graph = graph;
    if (graph->last != nullptr) {
        graph->last->next = node;
    } else {
        graph->first = node;
    }
    graph->last = node;
    ++graph->count;
    return node;
}

namespace {

void destroy_nodes(Graph* graph) {
    while (graph->first != nullptr) {
        GraphNode* node = graph->first;
        graph->first = node->next;
        clear(&node->dependencies);
        drop_memory(node);
        destroy(node);
    }
    graph->last = nullptr;
    graph->count = 0;
}

}  // namespace

CUresult add_node(CUgraphNode* out,
                  CUgraph handle,
                  const CUgraphNode* dependencies,
                  size_t count,
                  CUgraphNodeType type) {
    Graph* graph = as<Graph>(handle);
    if (out == nullptr || graph == nullptr || (dependencies == nullptr && count > 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    NodeSet set{};
    for (size_t i = 0; i < count; ++i)
        add(&set, as<GraphNode>(dependencies[i]));
    GraphNode* node = append_node(graph, type, set);
    clear(&set);
    *out = reinterpret_cast<CUgraphNode>(node);
    return node != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuGraphCreate(CUgraph* out, unsigned) {
    FT_ENTER();
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<CUgraph>(new_graph());
    return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph handle) {
    Callbacks callbacks;
    {
        FT_ENTER();
        Graph* graph = as<Graph>(handle);
        if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
        destroy_nodes(graph);
        callbacks.release_all(&graph->users);
        destroy(graph);
    }
    callbacks.run();
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
    FT_ENTER();
    Graph* graph = as<Graph>(handle);
    if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (nodes == nullptr) {
        *count = size_t(graph->count);
        return CUDA_SUCCESS;
    }
    size_t written = 0;
    for (GraphNode* at = graph->first; at != nullptr && written < *count; at = at->next) {
        nodes[written++] = reinterpret_cast<CUgraphNode>(at);
    }
    for (size_t i = written; i < *count; ++i)
        nodes[i] = nullptr;
    *count = written;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
    FT_ENTER();
    GraphNode* node = as<GraphNode>(handle);
    if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle,
                                       CUgraphNode* dependencies,
                                       CUgraphEdgeData* edges,
                                       size_t* count) {
    FT_ENTER();
    GraphNode* node = as<GraphNode>(handle);
    if (node == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const size_t present = size_t(node->dependencies.count);
    if (dependencies == nullptr) {
        *count = present;
        return CUDA_SUCCESS;
    }
    const size_t wanted = *count < present ? *count : present;
    for (size_t i = 0; i < wanted; ++i) {
        dependencies[i] = reinterpret_cast<CUgraphNode>(node->dependencies.nodes[i]);
        if (edges != nullptr) edges[i] = {};
    }
    for (size_t i = wanted; i < *count; ++i)
        dependencies[i] = nullptr;
    *count = wanted;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(CUgraphNode* out,
                             CUgraph graph,
                             const CUgraphNode* dependencies,
                             size_t count) {
    FT_ENTER();
    return add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EMPTY);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* out,
                                 CUgraph graph,
                                 const CUgraphNode* dependencies,
                                 size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS*) {
    FT_ENTER();
    return add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_KERNEL);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* out,
                              CUgraph graph,
                              const CUgraphNode* dependencies,
                              size_t count,
                              const CUDA_MEMCPY3D*,
                              CUcontext) {
    FT_ENTER();
    return add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMCPY);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* out,
                              CUgraph graph,
                              const CUgraphNode* dependencies,
                              size_t count,
                              const CUDA_MEMSET_NODE_PARAMS*,
                              CUcontext) {
    FT_ENTER();
    return add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_MEMSET);
}

CUresult cuGraphAddChildGraphNode(
    CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count, CUgraph child) {
    FT_ENTER();
    if (as<Graph>(child) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add_node(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_GRAPH);
}

// A conditional node gets its body graphs. They never run.
CUresult cuGraphAddNode_v2(CUgraphNode* out,
                           CUgraph graph,
                           const CUgraphNode* dependencies,
                           const CUgraphEdgeData*,
                           size_t count,
                           CUgraphNodeParams* parameters) {
    FT_ENTER();
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        return add_allocation_node(out, graph, dependencies, count, &parameters->alloc);
    }
    if (parameters->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
        return add_free_node(out, graph, dependencies, count, parameters->free.dptr);
    }
    FT_TRY(add_node(out, graph, dependencies, count, parameters->type));
    if (parameters->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
        const unsigned bodies = parameters->conditional.size;
        CUgraph* list = static_cast<CUgraph*>(calloc(bodies + 1, sizeof(CUgraph)));
        if (list == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        for (unsigned i = 0; i < bodies; ++i)
            list[i] = reinterpret_cast<CUgraph>(new_graph());
        parameters->conditional.phGraph_out = list;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphConditionalHandleCreate(
    CUgraphConditionalHandle* out, CUgraph graph, CUcontext, unsigned, unsigned) {
    FT_ENTER();
    if (out == nullptr || as<Graph>(graph) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = g_next_id++;
    return CUDA_SUCCESS;
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char*, unsigned) {
    FT_ENTER();
    return as<Graph>(graph) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
