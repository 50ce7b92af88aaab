#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "plan/validate.h"

namespace fourpiles {
namespace {

Result<Prediction> Predict(std::string_view kind, std::string_view row) {
  const auto json = ReadJson(row, "row");
  EXPECT_TRUE(json) << row;
  const auto kinds = LlamacppRunKinds();
  const auto found = std::ranges::find(kinds, kind, &RunKind::kind);
  EXPECT_NE(found, kinds.end()) << kind;
  return found->predict(*Fields::Of(*json, "row"));
}

std::string Reason(std::string_view kind, std::string_view row) {
  const auto prediction = Predict(kind, row);
  return prediction ? "expressed" : prediction.error().text.found;
}

constexpr std::string_view kPythia = R"({"model": "Pythia-2.8B", "dtype_quant": "F16",
    "device": "V100-16GB", "figure_name": "model_buffer_CUDA0", "unit": "MiB",
    "arch": {"n_layer": 32, "n_embd": 2560, "n_head": 32, "n_head_kv": 32, "head_dim": 80,
             "n_ff": 10240, "n_vocab": 50304}})";

// A log of ggml-org's continuous integration: 5049.71 MiB.
TEST(LlamacppRuns, BuildAModelThatTheCatalogueLacks) {
  EXPECT_NEAR(Predict("gguf_weights", kPythia)->value, 5049.71, 0.005);
}

// K 18.00 and V 64.00 MiB of one log.
TEST(LlamacppRuns, TellKeysAndValuesApart) {
  const std::string row =
      R"({"arch": {}, "ctx": 1024, "cells": 1024, "kv_layers": 32, "unit": "MiB",
      "k_dim": 1024, "v_dim": 1024, "kv_dtype_k": "iq4_nl", "kv_dtype_v": "f16", "figure_name": ")";
  EXPECT_EQ(Predict("llamacpp_kv", row + "kv_total\"}")->value, 82);
  EXPECT_EQ(Predict("llamacpp_kv", row + "k_size\"}")->value, 18);
  EXPECT_EQ(Predict("llamacpp_kv", row + "v_size\"}")->value, 64);
}

TEST(LlamacppRuns, SayWhatKeepsThemFromBeingExpressed) {
  EXPECT_EQ(Reason("gguf_weights", R"({"model": "Llama-3.1-8B", "dtype_quant": "?", "arch": {}})"),
            "dtype_quant \"?\" is no mixture of llama-quantize");
  EXPECT_EQ(Reason("gguf_weights", R"({"model": "Unheard-Of", "dtype_quant": "Q8_0", "arch": {}})"),
            "model \"Unheard-Of\" says no family that is known");
  EXPECT_EQ(Reason("gguf_weights", R"({"model": "Llama-3.1-8B", "dtype_quant": "Q8_0", "arch": {},
                                       "figure_name": "model_buffer_CUDA1"})"),
            "which layers are on \"CUDA1\" is not said");
  EXPECT_EQ(Reason("llamacpp_kv", R"({"ctx": 512})"), "no field arch");
  EXPECT_EQ(Reason("llamacpp_kv", R"({"arch": {"n_layer": 1}, "ctx": 512, "k_dim": 8, "v_dim": 8,
                                      "kv_dtype_k": "q6_z"})"),
            "kv_dtype_k \"q6_z\" is no type that is known");
  EXPECT_EQ(Reason("llamacpp_recurrent", R"({"rs_layers": 1})"), "no field d_conv");
  EXPECT_EQ(Reason("llamacpp_compute", R"({"figure_name": "vram"})"),
            "figure_name \"vram\" is not known");
}

}  // namespace
}  // namespace fourpiles
