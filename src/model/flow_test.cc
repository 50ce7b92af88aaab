#include "model/flow.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

Parameters SmallLayer() {
  Parameters layer;
  Append(layer, "norm", Norm(8));
  Append(layer, "mlp.up", Linear({32, 8}, Divide::kOutputs, true));
  Append(layer, "mlp.down", Linear({8, 32}, Divide::kInputs));
  Append(layer, "last", Norm(8, true));
  return layer;
}

TEST(Flow, FindsParametersByTheNameOfTheirModule) {
  const Parameters layer = SmallLayer();
  Flow flow(layer);
  const Value up = flow.Linear("mlp.up", Flow::Input());
  flow.Linear("mlp.down", up);
  const std::vector<Operator> operators = flow.Take();
  ASSERT_EQ(operators.size(), 2U);
  EXPECT_EQ(operators[0].parameters,
            (std::vector<ParameterUse>{{.parameter = 1}, {.parameter = 2}}));
  EXPECT_EQ(operators[0].widths, std::vector<std::int64_t>{32});
  EXPECT_EQ(operators[1].parameters, std::vector<ParameterUse>{{.parameter = 3}});
  EXPECT_EQ(operators[1].inputs, operators[0].outputs);
}

TEST(Flow, TakesANormWithoutABiasForAnRmsNorm) {
  const Parameters layer = SmallLayer();
  Flow flow(layer);
  flow.Norm("last", flow.Norm("norm", Flow::Input()));
  const std::vector<Operator> operators = flow.Take();
  EXPECT_EQ(operators[0].kind, OperatorKind::kRmsNorm);
  EXPECT_EQ(operators[1].kind, OperatorKind::kLayerNorm);
}

TEST(Flow, SplitsIntoAsManyValuesAsWidths) {
  const Parameters layer = SmallLayer();
  Flow flow(layer);
  const std::vector<Value> parts = flow.Split(Flow::Input(), {2, 6});
  EXPECT_EQ(parts, (std::vector<Value>{1, 2}));
  EXPECT_EQ(flow.Add(parts[0], parts[1]), 3);
}

TEST(Flow, DropsOnlyWhereDropoutIsUsed) {
  const Parameters layer = SmallLayer();
  Flow flow(layer);
  EXPECT_EQ(flow.Dropout("drop", Flow::Input(), false), Flow::Input());
  EXPECT_NE(flow.Dropout("drop", Flow::Input()), Flow::Input());
}

}  // namespace
}  // namespace fourpiles
