// Executable graphs: instantiate, update, launch. A launch runs the host nodes and otherwise counts
// as one kernel.
#include "driver/user_objects.h"

namespace fragtrace::vgpu {
namespace {

// Instantiation fixes what a launch does: it calls these host functions in order.
struct GraphExec {
    static constexpr Kind kKind = Kind::kGraphExec;
    Object object;
    uint64_t flags;
    HostCall* calls;
    int call_count;
    UserReference* users;
    MemorySteps memory;
};

bool frees_itself(const GraphExec& exec) {
    return (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
}

CUresult instantiate(CUgraphExec* out, Graph* graph, uint64_t flags) {
    if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    GraphExec* exec = make<GraphExec>();
    if (exec == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    if (const CUresult refused = take_steps(graph, &exec->memory)) {
        destroy(exec);
        return refused;
    }
    exec->flags = flags;
    exec->calls = static_cast<HostCall*>(calloc(size_t(graph->count) + 1, sizeof(HostCall)));
    if (exec->calls == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    for (GraphNode* node = graph->first; node != nullptr; node = node->next) {
        if (node->host_function == nullptr) continue;
        exec->calls[exec->call_count++] = {node->host_function, node->host_data};
    }
    for (UserReference* user = graph->users; user != nullptr; user = user->next) {
        user->object->references += 1;
        if (!retain(&exec->users, user->object, 1)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = reinterpret_cast<CUgraphExec>(exec);
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
    FT_ENTER();
    return instantiate(out, as<Graph>(graph), flags);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* out,
                                      CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    FT_ENTER();
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    parameters->hErrNode_out = nullptr;
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return instantiate(out, as<Graph>(graph), parameters->flags);
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
    FT_ENTER();
    GraphExec* exec = as<GraphExec>(handle);
    if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
    Callbacks callbacks;
    {
        FT_ENTER();
        GraphExec* exec = as<GraphExec>(handle);
        if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
        free(exec->calls);
        drop_steps(&exec->memory);
        callbacks.release_all(&exec->users);
        destroy(exec);
    }
    callbacks.run();
    return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream) {
    FT_ENTER();
    GraphExec* exec = as<GraphExec>(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return back_steps(exec->memory, frees_itself(*exec), false);
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream) {
    GraphExec* exec = nullptr;
    {
        FT_ENTER();
        exec = as<GraphExec>(handle);
        if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
        if (!captured(stream, CU_GRAPH_NODE_TYPE_KERNEL)) {
            FT_TRY(back_steps(exec->memory, frees_itself(*exec), true));
        }
        note_kernel();
    }
    for (int i = 0; i < exec->call_count; ++i)
        exec->calls[i].function(exec->calls[i].data);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec,
                              CUgraph graph,
                              CUgraphExecUpdateResultInfo* result) {
    FT_ENTER();
    if (as<GraphExec>(exec) == nullptr || as<Graph>(graph) == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (result != nullptr) *result = {};
    return CUDA_SUCCESS;
}

// A launch does not depend on what its nodes do, so new parameters change nothing.
namespace {

CUresult change(CUgraphExec exec, CUgraphNode node) {
    FT_ENTER();
    const bool both = as<GraphExec>(exec) != nullptr && as<GraphNode>(node) != nullptr;
    return both ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec,
                                           CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS*) {
    return change(exec, node);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec,
                                        CUgraphNode node,
                                        const CUDA_MEMCPY3D*,
                                        CUcontext) {
    return change(exec, node);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec,
                                        CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS*,
                                        CUcontext) {
    return change(exec, node);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec,
                                  CUgraphNode node,
                                  CUgraphNodeParams* nodeParams) {
    return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : change(exec, node);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph) {
    return change(exec, node);
}
