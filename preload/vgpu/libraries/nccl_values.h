// NCCL's data types and reductions on the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fragtrace::vgpu {

enum DataType : int {
    kInt8,
    kUint8,
    kInt32,
    kUint32,
    kInt64,
    kUint64,
    kHalf,
    kFloat,
    kDouble,
    kBfloat16,
    kFloat8e4m3,
    kFloat8e5m2,
    kDataTypes
};

enum Reduction : int { kSum, kProd, kMax, kMin, kAvg, kReductions };

size_t bytes_of(int type);  // 0: no such type

// False for the types of 8-bit floats, whose results are unknown.
bool can_reduce(int type);

// to[i] = to[i] op from[i]. kAvg adds up.
void reduce(void* to, const void* from, size_t count, int type, int reduction);
void divide(void* values, size_t count, int type, int divisor);
void multiply(void* values, size_t count, int type, const void* factor);  // one value of `type`

}  // namespace fragtrace::vgpu
