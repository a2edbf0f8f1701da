// The layouts are those of PyTorch 2.6 to 2.15, which are equal. What does not look like them is
// not computed.
#include "runtime/known_kernels.h"

#include "libraries/kernel_launch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

namespace fragtrace::vgpu {
namespace {

constexpr uint64_t kMostElements = 4096;
constexpr uint64_t kMostBytes = uint64_t{1} << 20;

enum class Computes : uint8_t {
    kNothing,
    kOther,  // an elementwise kernel that is not computed
    kFill1,  // by the size of an element
    kFill4,
    kFill8,
    kAdd,        // (a, b): a + alpha * b
    kAddScalar,  // (a): a + alpha * scalar
    kCompare,
    kSum,
    kMax,
    kMin,
    kCat1,  // by the size of an element
    kCat8
};

struct KnownKernel {
    const void* function;
    Computes computes;
};

// Open addressing. Kernels are registered while libraries load, and never removed.
constexpr size_t kSlots = 32768;
KnownKernel g_kernels[kSlots];
int g_kernel_count;
pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;

size_t slot_of(const void* function) {
    return size_t(reinterpret_cast<uintptr_t>(function) * 0x9e3779b97f4a7c15U >> 49) % kSlots;
}

bool begins_with(const char* text, const char* start) {
    return strncmp(text, start, strlen(start)) == 0;
}

Computes fill_of(char type) {
    switch (type) {
        case 'b':
        case 'h':
        case 'a':
            return Computes::kFill1;
        case 'i':
        case 'f':
            return Computes::kFill4;
        case 'l':
        case 'd':
            return Computes::kFill8;
        default:
            return Computes::kOther;
    }
}

// `functor` follows the kernel's name and its vector size, if it has one.
Computes elementwise(const char* functor) {
    constexpr const char kFill[] = "NS0_11FillFunctorI";
    if (begins_with(functor, kFill) && functor[sizeof kFill] == 'E') {
        return fill_of(functor[sizeof kFill - 1]);
    }
    if (begins_with(functor, "NS0_15CUDAFunctor_addIlEE")) return Computes::kAdd;
    if (begins_with(functor, "NS0_21CUDAFunctorOnSelf_addIlEE")) return Computes::kAddScalar;
    if (begins_with(functor, "NS0_") && strstr(functor, "14CompareFunctorIlEE") != nullptr) {
        return Computes::kCompare;
    }
    return Computes::kOther;
}

Computes reduction(const char* name) {
    if (strstr(name, "8ReduceOpIlNS0_14func_wrapper_tIl") == nullptr ||
        strstr(name, "EEjlLi4E") == nullptr) {
        return Computes::kNothing;
    }
    if (strstr(name, "11sum_functorIlll") != nullptr) return Computes::kSum;
    if (strstr(name, "13MaxNanFunctorIlE") != nullptr) return Computes::kMax;
    if (strstr(name, "13MinNanFunctorIlE") != nullptr) return Computes::kMin;
    return Computes::kNothing;
}

Computes computes(const char* name) {
    constexpr const char kNative[] = "_ZN2at6native";
    if (!begins_with(name, kNative)) return Computes::kNothing;
    const char* kernel = name + sizeof kNative - 1;
    constexpr const char kVectorized[] = "29vectorized_elementwise_kernelILi";
    if (begins_with(kernel, kVectorized)) {
        const char* functor = strchr(kernel + sizeof kVectorized - 1, 'E');
        return functor != nullptr ? elementwise(functor + 1) : Computes::kNothing;
    }
    constexpr const char kUnrolled[] = "27unrolled_elementwise_kernelI";
    if (begins_with(kernel, kUnrolled)) {
        return strstr(kernel, "15LoadWithoutCast") != nullptr
                   ? elementwise(kernel + sizeof kUnrolled - 1)
                   : Computes::kOther;
    }
    if (begins_with(kernel, "13reduce_kernelILi512ELi1E")) return reduction(kernel);
    if (strstr(kernel, "CatArrayBatchedCopy_") != nullptr) {
        if (strstr(kernel, "10OpaqueTypeILj1EEEjLi1ELi128ELi1E") != nullptr) return Computes::kCat1;
        if (strstr(kernel, "10OpaqueTypeILj8EEEjLi1ELi128ELi1E") != nullptr) return Computes::kCat8;
    }
    return Computes::kNothing;
}

bool is_elementwise(Computes what) {
    return what >= Computes::kOther && what <= Computes::kCompare;
}

Computes find(const void* function) {
    for (size_t i = slot_of(function);; i = (i + 1) % kSlots) {
        const void* known = __atomic_load_n(&g_kernels[i].function, __ATOMIC_ACQUIRE);
        if (known == nullptr) return Computes::kNothing;
        if (known == function) return g_kernels[i].computes;
    }
}

template <typename Value>
Value at(const void* memory, size_t offset) {
    Value value;
    memcpy(&value, static_cast<const char*>(memory) + offset, sizeof value);
    return value;
}

bool read(uint64_t address, void* out, size_t bytes) {
    return bytes <= kMostBytes && driver_interface()->read(address, out, bytes) == Known::kAll;
}

// A result that is written once the kernel was launched.
struct Result {
    uint64_t address;
    size_t bytes;
    unsigned char* values;
};

bool make(Result* result, uint64_t address, size_t bytes) {
    *result = {address, bytes, static_cast<unsigned char*>(calloc(1, bytes))};
    return result->values != nullptr;
}

bool fill(void** parameters, size_t element_bytes, Result* result) {
    const int count = at<int>(parameters[0], 0);
    const size_t bytes = size_t(count) * element_bytes;
    if (count <= 0 || uint64_t(count) > kMostElements ||
        !make(result, at<uint64_t>(parameters[2], 0), bytes)) {
        return false;
    }
    for (size_t i = 0; i < bytes; ++i) {
        result->values[i] = at<unsigned char>(parameters[1], i % element_bytes);
    }
    return true;
}

int64_t plus(int64_t left, int64_t alpha, int64_t right) {
    return int64_t(uint64_t(left) + uint64_t(alpha) * uint64_t(right));
}

bool compare(int operation, int64_t left, int64_t right) {
    switch (operation) {
        case 0:
            return left >= right;
        case 1:
            return left > right;
        case 2:
            return left <= right;
        default:
            return left < right;
    }
}

// Two arrays of integers, or one and a scalar, to an array of integers or of bool.
bool combine(Computes what, void** parameters, Result* result) {
    const int count = at<int>(parameters[0], 0);
    const size_t bytes = size_t(count) * sizeof(int64_t);
    if (count <= 0 || uint64_t(count) > kMostElements) return false;
    auto* operands = static_cast<int64_t*>(calloc(2, bytes));
    const bool two = what != Computes::kAddScalar;
    const bool known = operands != nullptr &&
                       read(at<uint64_t>(parameters[2], 8), operands, bytes) &&
                       (!two || read(at<uint64_t>(parameters[2], 16), operands + count, bytes)) &&
                       make(result,
                            at<uint64_t>(parameters[2], 0),
                            what == Computes::kCompare ? size_t(count) : bytes);
    for (int i = 0; known && i < count; ++i) {
        const int64_t left = operands[i];
        if (what == Computes::kCompare) {
            result->values[i] =
                compare(at<int>(parameters[1], 0), left, operands[count + i]) ? 1 : 0;
            continue;
        }
        const int64_t sum =
            two ? plus(left, at<int64_t>(parameters[1], 0), operands[count + i])
                : plus(left, at<int64_t>(parameters[1], 8), at<int64_t>(parameters[1], 0));
        memcpy(result->values + size_t(i) * sizeof sum, &sum, sizeof sum);
    }
    free(operands);
    return known;
}

// One integer from an array without gaps. The parameter is PyTorch's ReduceOp.
bool reduce(Computes what, void** parameters, Result* result) {
    constexpr size_t kConfig = 16;      // ReduceConfig: bytes of an element, inputs, outputs
    constexpr size_t kDimensions = 80;  // OffsetCalculator of the input
    constexpr size_t kStride = 384;
    constexpr size_t kSource = 992;
    const void* parameter = parameters[0];
    const uint32_t count = at<uint32_t>(parameter, kConfig + 4);
    if (at<uint32_t>(parameter, kConfig) != 8 || count == 0 || count > kMostElements ||
        at<uint32_t>(parameter, kConfig + 8) != 1 || at<uint32_t>(parameter, kDimensions) != 1 ||
        (count > 1 && at<uint32_t>(parameter, kStride) != 8)) {
        return false;
    }
    // After the source and the two results: buffers of reductions by several blocks, then flags.
    for (size_t offset = kSource + 16; offset < kSource + 56; offset += 8) {
        if (at<uint64_t>(parameter, offset) != 0) return false;
    }
    if (at<uint16_t>(parameter, kSource + 56) != 0x0100) return false;
    auto* values = static_cast<int64_t*>(malloc(count * sizeof(int64_t)));
    const bool known = values != nullptr &&
                       read(at<uint64_t>(parameter, kSource), values, count * sizeof(int64_t)) &&
                       make(result, at<uint64_t>(parameter, kSource + 8), sizeof(int64_t));
    if (known) {
        int64_t all = values[0];
        for (uint32_t i = 1; i < count; ++i) {
            const int64_t value = values[i];
            if (what == Computes::kSum) all = plus(all, 1, value);
            if (what == Computes::kMax && value > all) all = value;
            if (what == Computes::kMin && value < all) all = value;
        }
        memcpy(result->values, &all, sizeof all);
    }
    free(values);
    return known;
}

// One-dimensional tensors, one after the other. The parameters are the result and the inputs'
// CatArrInputTensorMetadata; the grid has a row per input.
bool concatenate(size_t element_bytes, dim3 grid, void** parameters, Result* result) {
    constexpr uint32_t kMostInputs = 128;
    constexpr size_t kOffsets = kMostInputs * 8;
    constexpr size_t kCounts = kOffsets + size_t{2} * kMostInputs * 4;
    const void* inputs = parameters[1];
    if (grid.y == 0 || grid.y > kMostInputs) return false;
    uint64_t total = 0;
    for (unsigned i = 0; i < grid.y; ++i) {
        if (at<uint32_t>(inputs, kOffsets + i * 4) != total) return false;
        total += at<uint32_t>(inputs, kCounts + i * 4);
    }
    if (total == 0 || total * element_bytes > kMostBytes ||
        !make(result, at<uint64_t>(parameters[0], 0), total * element_bytes)) {
        return false;
    }
    for (unsigned i = 0; i < grid.y; ++i) {
        const size_t bytes = at<uint32_t>(inputs, kCounts + i * 4) * element_bytes;
        const size_t offset = at<uint32_t>(inputs, kOffsets + i * 4) * element_bytes;
        if (bytes > 0 && !read(at<uint64_t>(inputs, i * 8), result->values + offset, bytes)) {
            return false;
        }
    }
    return true;
}

// The result of an elementwise kernel becomes unknown. An element has at most 16 bytes.
bool write_unknown(void** parameters, Result* result) {
    const int count = at<int>(parameters[0], 0);
    *result = {at<uint64_t>(parameters[2], 0), size_t(count > 0 ? count : 0) * 16, nullptr};
    return count > 0;
}

bool compute(Computes what, dim3 grid, void** parameters, Result* result) {
    switch (what) {
        case Computes::kFill1:
            return fill(parameters, 1, result);
        case Computes::kFill4:
            return fill(parameters, 4, result);
        case Computes::kFill8:
            return fill(parameters, 8, result);
        case Computes::kAdd:
        case Computes::kAddScalar:
        case Computes::kCompare:
            return combine(what, parameters, result);
        case Computes::kCat1:
            return concatenate(1, grid, parameters, result);
        case Computes::kCat8:
            return concatenate(8, grid, parameters, result);
        case Computes::kOther:
            return false;
        default:
            return reduce(what, parameters, result);
    }
}

}  // namespace

void note_kernel_name(const void* function, const char* name) {
    if (function == nullptr || name == nullptr) return;
    const Computes what = computes(name);
    if (what == Computes::kNothing) return;
    pthread_mutex_lock(&g_mutex);
    if (g_kernel_count < int(kSlots / 2)) {
        size_t i = slot_of(function);
        while (g_kernels[i].function != nullptr && g_kernels[i].function != function) {
            i = (i + 1) % kSlots;
        }
        g_kernel_count += g_kernels[i].function == nullptr ? 1 : 0;
        g_kernels[i].computes = what;
        __atomic_store_n(&g_kernels[i].function, function, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&g_mutex);
}

bool compute_kernel(const void* function, dim3 grid, void** parameters, cudaStream_t stream) {
    const Computes what = find(function);
    if (what == Computes::kNothing || parameters == nullptr || driver_interface() == nullptr) {
        return false;
    }
    Result result{};
    bool computed = compute(what, grid, parameters, &result);
    if (!computed) {
        free(result.values);
        result = {};
        computed = is_elementwise(what) && write_unknown(parameters, &result);
    }
    computed = computed && driver_interface()->run_kernel(stream);
    if (computed) driver_interface()->write(result.address, result.values, result.bytes);
    free(result.values);
    return computed;
}

}  // namespace fragtrace::vgpu
