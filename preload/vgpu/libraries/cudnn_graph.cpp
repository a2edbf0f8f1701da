// cuDNN's graph interface: descriptors with attributes. An attribute keeps what was set. Each graph
// of operations has one engine, whose plan needs the workspace of the model (README.md).
#include "libraries/cudnn.h"
#include "libraries/kernel_launch.h"

#include <stdlib.h>
#include <string.h>

namespace {

using namespace fragtrace::vgpu::cudnn;

// Types of descriptors, attributes and values, as far as anything depends on them.
enum : int {
    kEngine = 2,
    kEngineConfig = 3,
    kHeuristics = 4,
    kPlan = 5,
    kVariantPack = 16,

    kHeuristicsGraph = 201,
    kHeuristicsResults = 202,
    kConfigEngine = 300,
    kConfigWorkspace = 303,
    kConfigSharedMemory = 304,
    kPlanHandle = 400,
    kPlanConfig = 401,
    kPlanWorkspace = 402,
    kPlanText = 405,
    kFilterGradient = 715,
    kGraphOperations = 801,
    kGraphEngines = 802,
    kTensorType = 901,
    kTensorSizes = 902,
    kTensorStrides = 903,
    kTensorVirtual = 907,
    kPackPointers = 1001,
    kEngineGraph = 1300,
    kEngineIndex = 1301,

    kOfHandle = 0,
    kOfBoolean = 2,
    kOfInteger = 3,
    kOfDouble = 5,
    kOfPointer = 6,
    kOfDescriptor = 15,
    kOfInt32 = 23,
    kOfCharacter = 24,
    kOfFraction = 26,
};

struct Content;

struct Attribute {
    int name;
    int type;
    int64_t count;
    void* values;  // of a descriptor: Content*
    Attribute* next;
};

// Shared by all descriptors that were made equal, and by the attributes that name it.
struct Content {
    int references;
    int type;
    Attribute* attributes;
};

struct Descriptor {
    Content* content;
};

size_t size_of(int type) {
    switch (type) {
        case kOfBoolean:
        case kOfCharacter:
            return 1;
        case kOfHandle:
        case kOfInteger:
        case kOfDouble:
        case kOfPointer:
        case kOfDescriptor:
        case kOfFraction:
            return 8;
        default:
            return 4;
    }
}

Content* make_content(int type) {
    auto* content = static_cast<Content*>(calloc(1, sizeof(Content)));
    if (content != nullptr) {
        content->references = 1;
        content->type = type;
    }
    return content;
}

Content* share(Content* content) {
    if (content != nullptr) __atomic_add_fetch(&content->references, 1, __ATOMIC_RELAXED);
    return content;
}

void drop(Content* content);

void clear(Attribute* attribute) {
    for (int64_t i = 0; attribute->type == kOfDescriptor && i < attribute->count; ++i) {
        drop(static_cast<Content**>(attribute->values)[i]);
    }
    free(attribute->values);
    attribute->values = nullptr;
    attribute->count = 0;
}

void drop(Content* content) {
    if (content == nullptr || __atomic_sub_fetch(&content->references, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    while (Attribute* attribute = content->attributes) {
        content->attributes = attribute->next;
        clear(attribute);
        free(attribute);
    }
    free(content);
}

Attribute* find(const Content* content, int name) {
    Attribute* attribute = content != nullptr ? content->attributes : nullptr;
    while (attribute != nullptr && attribute->name != name)
        attribute = attribute->next;
    return attribute;
}

Content* first_descriptor(const Content* content, int name) {
    const Attribute* attribute = find(content, name);
    const bool has =
        attribute != nullptr && attribute->type == kOfDescriptor && attribute->count > 0;
    return has ? static_cast<Content**>(attribute->values)[0] : nullptr;
}

// `values` of descriptors are contents, whose references pass to the attribute.
int keep(Content* content, int name, int type, int64_t count, const void* values) {
    Attribute* attribute = find(content, name);
    if (attribute == nullptr) {
        attribute = static_cast<Attribute*>(calloc(1, sizeof(Attribute)));
        if (attribute == nullptr) return kNoHostMemory;
        attribute->name = name;
        attribute->next = content->attributes;
        content->attributes = attribute;
    }
    clear(attribute);
    const size_t bytes = static_cast<size_t>(count) * size_of(type);
    attribute->type = type;
    if (bytes != 0) {
        attribute->values = malloc(bytes);
        if (attribute->values == nullptr) return kNoHostMemory;
        memcpy(attribute->values, values, bytes);
    }
    attribute->count = count;
    return kSuccess;
}

// ---- the model of workspaces --------------------------------------------------------------------

int64_t integer_at(const Content* content, int name, int64_t at, int64_t otherwise) {
    const Attribute* attribute = find(content, name);
    if (attribute == nullptr || at >= attribute->count) return otherwise;
    if (attribute->type == kOfInteger) return static_cast<int64_t*>(attribute->values)[at];
    if (size_of(attribute->type) == 4) return static_cast<int32_t*>(attribute->values)[at];
    return static_cast<uint8_t*>(attribute->values)[at];
}

// Bytes of a tensor that must be copied; with `sums`, those of its elements as floats instead.
uint64_t tensor_bytes(const Content* tensor, bool sums) {
    const Attribute* sizes = find(tensor, kTensorSizes);
    if (sizes == nullptr || sizes->type != kOfInteger || sizes->count < 1 ||
        integer_at(tensor, kTensorVirtual, 0, 0) != 0) {
        return 0;
    }
    uint64_t elements = 1;
    for (int64_t i = 0; i < sizes->count; ++i) {
        const int64_t size = static_cast<int64_t*>(sizes->values)[i];
        if (size <= 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements)) {
            return 0;
        }
    }
    if (sums) return elements * kSumBytes;
    const auto type = static_cast<int>(integer_at(tensor, kTensorType, 0, 0));
    return transposed_bytes(bytes_of_type(type, elements),
                            integer_at(tensor, kTensorSizes, 1, 1),
                            integer_at(tensor, kTensorStrides, 1, 1));
}

uint64_t workspace_of_graph(const Content* graph) {
    const Attribute* operations = find(graph, kGraphOperations);
    uint64_t bytes = 0;
    if (operations == nullptr || operations->type != kOfDescriptor) return 0;
    for (int64_t i = 0; i < operations->count; ++i) {
        const Content* operation = static_cast<Content**>(operations->values)[i];
        const bool convolves =
            operation != nullptr && operation->type >= 10 && operation->type <= 12;
        const Attribute* attribute = convolves ? operation->attributes : nullptr;
        for (; attribute != nullptr; attribute = attribute->next) {
            const Content* tensor = first_descriptor(operation, attribute->name);
            bytes += tensor != nullptr ? tensor_bytes(tensor, false) : 0;
        }
        bytes += tensor_bytes(first_descriptor(operation, kFilterGradient), true);
    }
    return bytes;
}

const Content* graph_of_config(const Content* config) {
    return first_descriptor(first_descriptor(config, kConfigEngine), kEngineGraph);
}

int keep_integer(Content* content, int name, int64_t value) {
    return keep(content, name, kOfInteger, 1, &value);
}

int complete_config(Content* config) {
    const int32_t shared_bytes = 0;
    keep(config, kConfigSharedMemory, kOfInt32, 1, &shared_bytes);
    const uint64_t bytes = workspace_of_graph(graph_of_config(config));
    return keep_integer(config, kConfigWorkspace, static_cast<int64_t>(bytes));
}

// What cuDNN computes when a descriptor is complete.
int complete(Content* content) {
    if (content->type == kHeuristics) {
        Content* graph = first_descriptor(content, kHeuristicsGraph);
        Content* engine = make_content(kEngine);
        Content* config = make_content(kEngineConfig);
        Content* shared = share(graph);
        if (engine == nullptr || config == nullptr) {
            drop(engine);
            drop(config);
            drop(shared);
            return kNoHostMemory;
        }
        keep(engine, kEngineGraph, kOfDescriptor, shared != nullptr ? 1 : 0, &shared);
        keep_integer(engine, kEngineIndex, 0);
        keep(config, kConfigEngine, kOfDescriptor, 1, &engine);
        complete_config(config);
        return keep(content, kHeuristicsResults, kOfDescriptor, 1, &config);
    }
    if (content->type == kPlan) {
        const Content* config = first_descriptor(content, kPlanConfig);
        static const char text[] = R"({"engine": "fragtrace virtual cuDNN"})";
        keep(content, kPlanText, kOfCharacter, sizeof text, text);
        const uint64_t bytes = workspace_of_graph(graph_of_config(config));
        return keep_integer(content, kPlanWorkspace, static_cast<int64_t>(bytes));
    }
    if (content->type == kEngineConfig) return complete_config(content);
    if (find(content, kGraphOperations) != nullptr) return keep_integer(content, kGraphEngines, 1);
    return kSuccess;
}

}  // namespace

extern "C" {

FT_EXPORT int cudnnBackendCreateDescriptor(int type, void** out) {
    const int status = make(out, sizeof(Descriptor));
    if (status != kSuccess) return status;
    auto* descriptor = static_cast<Descriptor*>(*out);
    descriptor->content = make_content(type);
    return descriptor->content != nullptr ? kSuccess : kNoHostMemory;
}

FT_EXPORT int cudnnBackendInitialize(Descriptor*) {
    return kSuccess;
}

FT_EXPORT int cudnnBackendDestroyDescriptor(Descriptor* descriptor) {
    if (descriptor != nullptr) drop(descriptor->content);
    free(descriptor);
    return kSuccess;
}

FT_EXPORT int cudnnBackendFinalize(Descriptor* descriptor) {
    return descriptor == nullptr ? kBadParameter : complete(descriptor->content);
}

FT_EXPORT int cudnnBackendSetAttribute(
    Descriptor* descriptor, int name, int type, int64_t count, const void* values) {
    constexpr int64_t kMost = 1 << 20;
    if (descriptor == nullptr || count < 0 || count > kMost || (count > 0 && values == nullptr)) {
        return kBadParameter;
    }
    if (type != kOfDescriptor) return keep(descriptor->content, name, type, count, values);
    const size_t bytes = static_cast<size_t>(count) * size_of(kOfDescriptor);
    auto** contents = static_cast<Content**>(malloc(bytes + 1));
    if (contents == nullptr) return kNoHostMemory;
    for (int64_t i = 0; i < count; ++i) {
        Descriptor* const named = static_cast<Descriptor* const*>(values)[i];
        contents[i] = named != nullptr ? share(named->content) : nullptr;
    }
    const int status = keep(descriptor->content, name, type, count, contents);
    free(contents);
    return status;
}

// Descriptors in `values` are the caller's own; each becomes equal to one of the attribute.
FT_EXPORT int cudnnBackendGetAttribute(
    Descriptor* descriptor, int name, int type, int64_t wanted, int64_t* count, void* values) {
    if (descriptor == nullptr) return kBadParameter;
    const Attribute* attribute = find(descriptor->content, name);
    const int64_t has = attribute != nullptr ? attribute->count : 0;
    if (count != nullptr) *count = has;
    if (has == 0 || values == nullptr) return kSuccess;
    if (attribute->type != type) return kBadParameter;
    const int64_t copied = has < wanted ? has : wanted;
    if (type != kOfDescriptor) {
        memcpy(values, attribute->values, static_cast<size_t>(copied) * size_of(type));
        return kSuccess;
    }
    for (int64_t i = 0; i < copied; ++i) {
        Descriptor* const equal = static_cast<Descriptor**>(values)[i];
        if (equal == nullptr) return kBadParameter;
        Content* content = share(static_cast<Content**>(attribute->values)[i]);
        drop(equal->content);
        equal->content = content;
    }
    return kSuccess;
}

FT_EXPORT int cudnnBackendExecute(const Handle* handle, Descriptor*, const Descriptor* pack) {
    if (handle == nullptr || pack == nullptr) return kBadParameter;
    constexpr int64_t kMost = 64;
    void* pointers[kMost] = {};
    const Attribute* given = find(pack->content, kPackPointers);
    for (int64_t i = 0; given != nullptr && i < given->count && i < kMost; ++i) {
        pointers[i] = static_cast<void**>(given->values)[i];
    }
    void* parameters[] = {static_cast<void*>(pointers), nullptr};
    const bool all = given != nullptr && given->count > kMost;
    fragtrace::vgpu::launch_empty_kernel(handle->stream, all ? nullptr : parameters);
    return kSuccess;
}

FT_EXPORT int cudnnGetExecutionPlanWorkspaceSize(void*,
                                                 const Descriptor* plan,
                                                 const Descriptor*,
                                                 size_t* bytes) {
    if (plan == nullptr || bytes == nullptr) return kBadParameter;
    *bytes = static_cast<size_t>(integer_at(plan->content, kPlanWorkspace, 0, 0));
    return kSuccess;
}

}  // extern "C"
