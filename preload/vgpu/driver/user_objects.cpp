// User objects: graphs hold references to them. The release of the last reference calls the
// object's destructor.
#include "driver/user_objects.h"

namespace fragtrace::vgpu {

bool retain(UserReference** list, UserObject* object, unsigned count) {
    UserReference* reference = static_cast<UserReference*>(malloc(sizeof(UserReference)));
    if (reference == nullptr) return false;
    *reference = {object, count, *list};
    *list = reference;
    return true;
}

void Callbacks::release(UserObject* object, unsigned references) {
    object->references -= references < object->references ? references : object->references;
    if (object->references > 0) return;
    if (count < 16) calls[count++] = {object->destroy, object->data};
    destroy(object);
}

void Callbacks::release_all(UserReference** list) {
    while (*list != nullptr) {
        UserReference* reference = *list;
        *list = reference->next;
        release(reference->object, reference->count);
        free(reference);
    }
}

void Callbacks::run() {
    for (int i = 0; i < count; ++i)
        calls[i].function(calls[i].data);
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuUserObjectCreate(
    CUuserObject* out, void* data, CUhostFn destroy_function, unsigned references, unsigned) {
    FT_ENTER();
    if (out == nullptr || destroy_function == nullptr || references == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    UserObject* object = make<UserObject>();
    if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    object->destroy = destroy_function;
    object->data = data;
    object->references = references;
    *out = reinterpret_cast<CUuserObject>(object);
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned count) {
    FT_ENTER();
    UserObject* object = as<UserObject>(handle);
    if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
    object->references += count;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned count) {
    Callbacks callbacks;
    {
        FT_ENTER();
        UserObject* object = as<UserObject>(handle);
        if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
        callbacks.release(object, count);
    }
    callbacks.run();
    return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph handle,
                                 CUuserObject user,
                                 unsigned count,
                                 unsigned flags) {
    FT_ENTER();
    Graph* graph = as<Graph>(handle);
    UserObject* object = as<UserObject>(user);
    if (graph == nullptr || object == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->references += count;
    return retain(&graph->users, object, count) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
