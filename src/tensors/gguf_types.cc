#include "tensors/gguf_types.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/check.h"

namespace fourpiles {
namespace {

struct Row {
  std::uint32_t id;
  std::string_view dtype;   // as ggml.h has it behind GGML_TYPE_
  std::string_view stored;  // the name of a StoredType
};

// enum ggml_type of ggml d99724f2, include/ggml.h.
constexpr Row kTypes[] = {
    {0, "F32", "float32"},    {1, "F16", "float16"},      {2, "Q4_0", "q4_0"},
    {3, "Q4_1", "q4_1"},      {6, "Q5_0", "q5_0"},        {7, "Q5_1", "q5_1"},
    {8, "Q8_0", "q8_0"},      {9, "Q8_1", "q8_1"},        {10, "Q2_K", "q2_k"},
    {11, "Q3_K", "q3_k"},     {12, "Q4_K", "q4_k"},       {13, "Q5_K", "q5_k"},
    {14, "Q6_K", "q6_k"},     {15, "Q8_K", "q8_k"},       {16, "IQ2_XXS", "iq2_xxs"},
    {17, "IQ2_XS", "iq2_xs"}, {18, "IQ3_XXS", "iq3_xxs"}, {19, "IQ1_S", "iq1_s"},
    {20, "IQ4_NL", "iq4_nl"}, {21, "IQ3_S", "iq3_s"},     {22, "IQ2_S", "iq2_s"},
    {23, "IQ4_XS", "iq4_xs"}, {24, "I8", "int8"},         {25, "I16", "int16"},
    {26, "I32", "int32"},     {27, "I64", "int64"},       {28, "F64", "float64"},
    {29, "IQ1_M", "iq1_m"},   {30, "BF16", "bfloat16"},   {34, "TQ1_0", "tq1_0"},
    {35, "TQ2_0", "tq2_0"},   {39, "MXFP4", "mxfp4"},     {40, "NVFP4", "nvfp4"},
    {41, "Q1_0", "q1_0"},     {42, "Q2_0", "q2_0"},
};
constexpr std::uint32_t kTypesEnd = 43;

// Numbers that mean nothing to ggml today. Their blocks are not read: what ggml removed was laid
// out for one processor, and several types of ik_llama.cpp keep a scale a row beside the blocks.
struct Foreign {
  std::uint32_t id;
  std::string_view dtype;
  std::string_view origin;
};
constexpr std::string_view kRemoved = "removed from ggml";
constexpr std::string_view kIk = "ik_llama.cpp";  // 8337e4cd, ggml/include/ggml.h
constexpr Foreign kForeignTypes[] = {
    {4, "Q4_2", kRemoved},
    {5, "Q4_3", kRemoved},
    {31, "Q4_0_4_4", kRemoved},
    {32, "Q4_0_4_8", kRemoved},
    {33, "Q4_0_8_8", kRemoved},
    {36, "I2_S", "BitNet"},  // IQ4_NL_4_4 before ggml removed it; seen in BitNet's files only
    {37, "IQ4_NL_4_8", kRemoved},
    {38, "IQ4_NL_8_8", kRemoved},
    {97, "Q8_0_X4", kIk},
    {98, "Q8_1_X4", kIk},
    {99, "Q8_2_X4", kIk},
    {133, "Q6_0", kIk},
    {134, "IQ1_BN", kIk},
    {135, "IQ2_BN", kIk},
    {136, "Q8_K64", kIk},
    {137, "IQ2_K", kIk},
    {138, "IQ3_K", kIk},
    {139, "IQ4_K", kIk},
    {140, "IQ5_K", kIk},
    {141, "IQ6_K", kIk},
    {144, "IQ4_KS", kIk},
    {145, "IQ2_KS", kIk},
    {146, "IQ4_KSS", kIk},
    {147, "Q8_K16", kIk},
    {148, "Q8_K32", kIk},
    {149, "Q8_KR8", kIk},
    {150, "Q8_K128", kIk},
    {151, "Q8_KV", kIk},
    {152, "IQ5_KS", kIk},
    {153, "IQ2_KT", kIk},
    {154, "IQ3_KT", kIk},
    {155, "IQ4_KT", kIk},
    {156, "IQ3_KS", kIk},
    {157, "IQ2_KL", kIk},
    {158, "IQ1_KT", kIk},
    {202, "Q4_0_R8", kIk},
    {206, "Q5_0_R4", kIk},
    {208, "Q8_0_R8", kIk},
    {210, "Q2_K_R4", kIk},
    {211, "Q3_K_R4", kIk},
    {212, "Q4_K_R4", kIk},
    {213, "Q5_K_R4", kIk},
    {214, "Q6_K_R4", kIk},
    {216, "IQ2_XXS_R4", kIk},
    {217, "IQ2_XS_R4", kIk},
    {218, "IQ3_XXS_R4", kIk},
    {219, "IQ1_S_R4", kIk},
    {220, "IQ4_NL_R4", kIk},
    {221, "IQ3_S_R4", kIk},
    {222, "IQ2_S_R4", kIk},
    {223, "IQ4_XS_R8", kIk},
    {229, "IQ1_M_R4", kIk},
    {230, "BF16_R16", kIk},
    {233, "Q6_0_R4", kIk},
    {335, "IQ2_BN_R4", kIk},
    {337, "IQ2_K_R4", kIk},
    {338, "IQ3_K_R4", kIk},
    {339, "IQ4_K_R4", kIk},
    {340, "IQ5_K_R4", kIk},
    {344, "IQ4_KS_R4", kIk},
    {352, "IQ5_KS_R4", kIk},
    {397, "Q8_K_R16", kIk},
    {398, "Q8_KV_R8", kIk},
    {399, "Q8_K_R8", kIk},
};

// Numbers that the fork has used without a name here: newer than the table.
bool IsOfIkLlama(std::uint32_t id) {
  return (id >= 97 && id <= 99) || (id >= 133 && id <= 158) || (id >= 202 && id <= 399);
}

}  // namespace

GgufType GgufTypeOf(std::uint32_t id) {
  const std::string description = fmt::format("tensor type {}", id);
  const auto* const known = std::ranges::find(kTypes, id, &Row::id);
  if (known != std::end(kTypes)) {
    const StoredType* stored = FindStoredType(known->stored);
    CHECK(stored != nullptr);
    return {std::string(known->dtype), stored, fmt::format("{} ({})", description, known->dtype)};
  }
  const auto* const foreign = std::ranges::find(kForeignTypes, id, &Foreign::id);
  if (foreign != std::end(kForeignTypes)) {
    const bool removed = foreign->origin == kRemoved;
    return {fmt::format("{} ({})", foreign->dtype, removed ? "removed" : foreign->origin),
            {},
            fmt::format("{} ({}{}{})", description, foreign->dtype, removed ? ", " : " of ",
                        foreign->origin)};
  }
  return {fmt::format("type {}", id),
          {},
          IsOfIkLlama(id) ? description + " (a number of ik_llama.cpp)" : description};
}

GgufTypes::GgufTypes() {
  for (std::uint32_t id = 0; id < kTypesEnd; ++id) {
    first_.push_back(GgufTypeOf(id));
  }
}

const GgufType& GgufTypes::Find(std::uint32_t id) {
  if (id < first_.size()) {
    return first_[id];
  }
  other_ = GgufTypeOf(id);
  return other_;
}

}  // namespace fourpiles
