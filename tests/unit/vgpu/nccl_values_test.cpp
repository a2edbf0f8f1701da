// Reductions of the virtual GPU's NCCL, value by value: rounding, signs, overflow, infinities.
#include "libraries/nccl_values.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace fragtrace::vgpu;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The only test of the conversions that does not use them: every half from its definition.
double value_of_half(std::uint16_t bits) {
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 0x3ff;
    if (exponent == 31) {
        return fraction != 0 ? std::nan("") : sign * kInfinity;
    }
    return exponent == 0 ? sign * std::ldexp(fraction, -24)
                         : sign * std::ldexp(1024 + fraction, exponent - 25);
}

double value_of_bfloat16(std::uint16_t bits) {
    const std::uint32_t all = std::uint32_t{bits} << 16;
    float value = 0;
    std::memcpy(&value, &all, sizeof value);
    return value;
}

template <typename Value>
Value reduced(Value left, Value right, DataType type, Reduction reduction) {
    reduce(&left, &right, 1, type, reduction);
    return left;
}

std::uint16_t sum_of_halves(std::uint16_t left, std::uint16_t right) {
    return reduced(left, right, kHalf, kSum);
}

std::uint16_t sum_of_bfloat16s(std::uint16_t left, std::uint16_t right) {
    return reduced(left, right, kBfloat16, kSum);
}

}  // namespace

TEST_CASE("every half plus zero is itself, and what is no number stays none") {
    int different = 0;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const std::uint16_t sum = sum_of_halves(half, 0x8000);  // minus zero changes no sign
        if (std::isnan(value_of_half(half))) {
            different += std::isnan(value_of_half(sum)) ? 0 : 1;
        } else {
            different += sum == half ? 0 : 1;
        }
    }
    CHECK(different == 0);
}

TEST_CASE("a sum of halves is the nearest half, and of two equally near ones the even one") {
    int wrong = 0;
    const auto check = [&wrong](std::uint16_t left, std::uint16_t right) {
        const double exact = value_of_half(left) + value_of_half(right);
        const std::uint16_t sum = sum_of_halves(left, right);
        if (std::fabs(exact) >= 65520) {
            wrong += std::isinf(value_of_half(sum)) ? 0 : 1;
            return;
        }
        const double error = std::fabs(value_of_half(sum) - exact);
        for (const int step : {-1, 1}) {
            const auto other = static_cast<std::uint16_t>(sum + step);
            if (((sum ^ other) & 0x8000) != 0 || !std::isfinite(value_of_half(other))) {
                continue;
            }
            const double other_error = std::fabs(value_of_half(other) - exact);
            wrong += other_error < error || (other_error == error && (sum & 1) != 0) ? 1 : 0;
        }
    };
    for (std::uint32_t left = 0; left < 0x7c00; left += 97) {
        for (std::uint32_t right = 0; right < 0x7c00; right += 131) {
            check(static_cast<std::uint16_t>(left), static_cast<std::uint16_t>(right));
            check(static_cast<std::uint16_t>(left), static_cast<std::uint16_t>(right | 0x8000));
        }
    }
    CHECK(wrong == 0);
    CHECK(sum_of_halves(0x3c00, 0x1000) == 0x3c00);  // 1 + half a step: down to the even half
    CHECK(sum_of_halves(0x3c01, 0x1000) == 0x3c02);  // up to the even half
    CHECK(sum_of_halves(0x7bff, 0x4c00) == 0x7c00);  // 65504 + 16 is infinite
    CHECK(std::isnan(value_of_half(sum_of_halves(0x7c00, 0xfc00))));
}

TEST_CASE("halves below 2^-14 are rounded to the nearest, halves of a step to the even one") {
    std::uint16_t half = 1;
    std::uint16_t factor = 0x3800;  // 0.5
    multiply(&half, 1, kHalf, &factor);
    CHECK(half == 0);
    half = 3;
    multiply(&half, 1, kHalf, &factor);
    CHECK(half == 2);
    half = 0x8003;
    multiply(&half, 1, kHalf, &factor);
    CHECK(half == 0x8002);
    half = 5;
    factor = 0x3801;  // a little more than a half
    multiply(&half, 1, kHalf, &factor);
    CHECK(half == 3);
}

TEST_CASE(
    "a sum of bfloat16 values is the nearest one, and of two equally near ones the even one") {
    CHECK(sum_of_bfloat16s(0x3f80, 0x3b80) == 0x3f80);  // 1 + half a step
    CHECK(sum_of_bfloat16s(0x3f81, 0x3b80) == 0x3f82);
    CHECK(sum_of_bfloat16s(0x3f80, 0x3b81) == 0x3f81);
    CHECK(sum_of_bfloat16s(0x7f7f, 0x7f7f) == 0x7f80);
    CHECK(std::isnan(value_of_bfloat16(sum_of_bfloat16s(0x7f80, 0xff80))));
    for (const unsigned none : {0x7fc0U, 0x7f81U, 0x7fffU, 0xffffU}) {
        CHECK(std::isnan(value_of_bfloat16(sum_of_bfloat16s(static_cast<std::uint16_t>(none), 0))));
    }
}

TEST_CASE("integers wrap around, keep their sign in a quotient and are compared with it") {
    CHECK(reduced<std::int8_t>(127, 1, kInt8, kSum) == -128);
    CHECK(reduced<std::uint8_t>(255, 2, kUint8, kSum) == 1);
    CHECK(reduced<std::int32_t>(-2, 1, kInt32, kMax) == 1);
    CHECK(reduced<std::int32_t>(1, -2, kInt32, kMin) == -2);
    CHECK(reduced<std::int32_t>(-2, 1, kInt32, kMin) == -2);
    CHECK(reduced<std::uint32_t>(0xfffffffe, 1, kUint32, kMax) == 0xfffffffe);
    CHECK(reduced<std::int64_t>(-3, 4, kInt64, kProd) == -12);
    CHECK(reduced<std::uint64_t>(~std::uint64_t{0}, 2, kUint64, kSum) == 1);
    std::int32_t average = -7;
    divide(&average, 1, kInt32, 2);
    CHECK(average == -3);
    std::uint64_t large = ~std::uint64_t{0};
    divide(&large, 1, kUint64, 2);
    CHECK(large == ~std::uint64_t{0} / 2);
    std::int64_t factor = -2;
    std::int64_t product = 21;
    multiply(&product, 1, kInt64, &factor);
    CHECK(product == -42);
}

TEST_CASE("floats and doubles are reduced in their own type, one value after the other") {
    std::vector<float> sums = {1, 2, 3};
    const std::vector<float> others = {10, 20, 30};
    reduce(sums.data(), others.data(), 2, kFloat, kAvg);  // adds up
    CHECK(sums == std::vector<float>{11, 22, 3});
    divide(sums.data(), 3, kFloat, 2);
    CHECK(sums == std::vector<float>{5.5, 11, 1.5});
    CHECK(reduced(0.1, 0.2, kDouble, kSum) == 0.1 + 0.2);
    CHECK(reduced(16777216.0F, 1.0F, kFloat, kSum) == 16777216.0F);
}

TEST_CASE("types have NCCL's sizes, and only 8-bit floats and unknown types cannot be reduced") {
    const std::size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    for (int type = 0; type < kDataTypes; ++type) {
        CHECK(bytes_of(type) == bytes[type]);
        CHECK(can_reduce(type) == (type != kFloat8e4m3 && type != kFloat8e5m2));
    }
    for (const int type : {-1, static_cast<int>(kDataTypes)}) {
        CHECK(bytes_of(type) == 0);
        CHECK_FALSE(can_reduce(type));
    }
}
