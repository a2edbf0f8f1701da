// Values of every type are read into the widest type of their kind and rounded when they are
// stored.
#include "libraries/nccl_values.h"

#include <string.h>

namespace fragtrace::vgpu {
namespace {

float float_of_bits(uint32_t bits) {
    float value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint32_t bits_of(float value) {
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

struct Half {
    uint16_t bits;

    explicit operator double() const {
        const uint32_t sign = uint32_t(bits & 0x8000U) << 16;
        const uint32_t exponent = bits >> 10 & 31U;
        const uint32_t fraction = bits & 0x3ffU;
        if (exponent == 31) return float_of_bits(sign | 0x7f800000U | fraction << 13);
        if (exponent != 0) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
        const double small = double(fraction) / 16777216.0;  // 2^-24
        return sign != 0 ? -small : small;
    }

    // rounds to the nearest, ties to even
    static Half of(double value) {
        const uint32_t all = bits_of(float(value));
        const uint32_t sign = all >> 16 & 0x8000U;
        const uint32_t rest = all & 0x7fffffffU;
        if (rest > 0x7f800000U) return {uint16_t(sign | 0x7e00U)};
        if (rest >= 0x477ff000U) return {uint16_t(sign | 0x7c00U)};
        if (rest < 0x38800000U) {  // below 2^-14: multiples of 2^-24
            const double scaled = double(float_of_bits(rest)) * 16777216.0;
            uint32_t whole = uint32_t(scaled);
            const double left = scaled - double(whole);
            if (left > 0.5 || (left == 0.5 && (whole & 1U) != 0)) ++whole;
            return {uint16_t(sign | whole)};
        }
        const uint32_t rounded = rest + 0xfffU + (rest >> 13 & 1U);
        return {uint16_t(sign | ((rounded >> 13) - (112U << 10)))};
    }
};

struct Bfloat16 {
    uint16_t bits;

    explicit operator double() const { return float_of_bits(uint32_t(bits) << 16); }

    static Bfloat16 of(double value) {
        const uint32_t all = bits_of(float(value));
        if ((all & 0x7fffffffU) > 0x7f800000U) return {0x7fc0};
        return {uint16_t((all + 0x7fffU + (all >> 16 & 1U)) >> 16)};
    }
};

// How a type is read into a wider one and stored.
template <typename Stored>
struct As {
    using Wide = Stored;

    static Wide read(Stored value) { return value; }

    static Stored store(Wide value) { return value; }
};

template <>
struct As<Half> {
    using Wide = double;

    static Wide read(Half value) { return double(value); }

    static Half store(Wide value) { return Half::of(value); }
};

template <>
struct As<Bfloat16> {
    using Wide = double;

    static Wide read(Bfloat16 value) { return double(value); }

    static Bfloat16 store(Wide value) { return Bfloat16::of(value); }
};

// Integers wrap around as on the device.
template <typename Wide>
Wide sum(Wide left, Wide right) {
    if constexpr (Wide(0.5) == Wide(0)) {
        return Wide(uint64_t(left) + uint64_t(right));
    } else {
        return left + right;
    }
}

template <typename Wide>
Wide product(Wide left, Wide right) {
    if constexpr (Wide(0.5) == Wide(0)) {
        return Wide(uint64_t(left) * uint64_t(right));
    } else {
        return left * right;
    }
}

template <typename Wide>
Wide quotient(Wide value, int divisor) {
    if constexpr (Wide(0.5) != Wide(0)) {
        return value / Wide(divisor);
    } else if constexpr (Wide(-1) < Wide(0)) {
        return Wide(int64_t(value) / divisor);
    } else {
        return Wide(uint64_t(value) / uint64_t(divisor));
    }
}

template <typename Wide>
Wide combine(Wide left, Wide right, int reduction) {
    switch (reduction) {
        case kProd:
            return product(left, right);
        case kMax:
            return right > left ? right : left;
        case kMin:
            return right < left ? right : left;
        default:
            return sum(left, right);
    }
}

// Calls action(pointer to the first value, As<its type>).
template <typename Action>
void with_type(void* values, int type, Action action) {
    switch (type) {
        case kInt8:
            return action(static_cast<int8_t*>(values), As<int8_t>{});
        case kUint8:
            return action(static_cast<uint8_t*>(values), As<uint8_t>{});
        case kInt32:
            return action(static_cast<int32_t*>(values), As<int32_t>{});
        case kUint32:
            return action(static_cast<uint32_t*>(values), As<uint32_t>{});
        case kInt64:
            return action(static_cast<int64_t*>(values), As<int64_t>{});
        case kUint64:
            return action(static_cast<uint64_t*>(values), As<uint64_t>{});
        case kHalf:
            return action(static_cast<Half*>(values), As<Half>{});
        case kFloat:
            return action(static_cast<float*>(values), As<float>{});
        case kDouble:
            return action(static_cast<double*>(values), As<double>{});
        case kBfloat16:
            return action(static_cast<Bfloat16*>(values), As<Bfloat16>{});
        default:
            return;
    }
}

}  // namespace

size_t bytes_of(int type) {
    constexpr size_t kBytes[kDataTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < kDataTypes ? kBytes[type] : 0;
}

bool can_reduce(int type) {
    return type >= 0 && type < kFloat8e4m3;
}

void reduce(void* to, const void* from, size_t count, int type, int reduction) {
    with_type(to, type, [=](auto* values, auto as) {
        const auto* others = static_cast<decltype(values)>(const_cast<void*>(from));
        for (size_t i = 0; i < count; ++i) {
            values[i] = as.store(combine(as.read(values[i]), as.read(others[i]), reduction));
        }
    });
}

void divide(void* values, size_t count, int type, int divisor) {
    with_type(values, type, [=](auto* first, auto as) {
        using Wide = decltype(as.read(*first));
        for (size_t i = 0; i < count; ++i) {
            first[i] = as.store(quotient<Wide>(as.read(first[i]), divisor));
        }
    });
}

void multiply(void* values, size_t count, int type, const void* factor) {
    with_type(values, type, [=](auto* first, auto as) {
        const auto by = as.read(*static_cast<decltype(first)>(const_cast<void*>(factor)));
        for (size_t i = 0; i < count; ++i) {
            first[i] = as.store(product(as.read(first[i]), by));
        }
    });
}

}  // namespace fragtrace::vgpu
