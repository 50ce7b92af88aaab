// ResNet, U-Net and LSTM.

#include <array>
#include <regex>

#include "model/flow.h"
#include "model/parts.h"
#include "tests/truth/networks.h"

namespace fourpiles::truth {
namespace {

// A convolution without padding at the border of its stride: kernel k, padding k / 2.
struct ConvolutionSize {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  bool bias = true;
};

// Collects the parameters and the operators of one block together.
class Images {
 public:
  explicit Images(const Row& row) : row_(row), flow_(parameters_) {}

  Value Convolution(const std::string& name, Value x, const ConvolutionSize& size) {
    Append(parameters_, name, Tensor("weight", {size.out, size.in, size.kernel, size.kernel}));
    if (size.bias) {
      Append(parameters_, name, Tensor("bias", {size.out}));
    }
    return Add({.kind = OperatorKind::kConvolution,
                .name = name,
                .inputs = {x},
                .parameters = Uses(name, size.bias),
                .widths = {size.out},
                .kernel = size.kernel,
                .stride = size.stride});
  }

  Value Norm(OperatorKind kind, const std::string& name, Value x, std::int64_t channels,
             std::int64_t groups = 1) {
    Append(parameters_, name, fourpiles::Norm(channels, true));
    return Add({.kind = kind,
                .name = name,
                .inputs = {x},
                .parameters = Uses(name, true),
                .groups = groups});
  }

  Value Linear(const std::string& name, Value x, std::int64_t in, std::int64_t out) {
    Append(parameters_, name, fourpiles::Linear({out, in}, Divide::kNot, true));
    return flow_.Linear(name, x);
  }

  Value Relu(Value x) {
    return flow_.Activation("relu", x,
                            row_.Flag("inplace") ? Activation::kReluInPlace : Activation::kRelu);
  }
  Value Silu(Value x) { return flow_.Activation("silu", x, Activation::kSilu); }
  Value Add(Operator op) { return flow_.Append(std::move(op)); }
  ParameterUse Use(const std::string& name) const { return flow_.Use(name); }

  void Finish(Network& network, const std::string& name = "", std::int64_t first = 0) {
    const std::string pattern = row_.Text("freeze");
    const std::string block = WithNumber(name, first);
    for (Parameter& parameter : parameters_) {
      const std::string whole = block.empty() ? parameter.name : block + "." + parameter.name;
      parameter.trainable =
          pattern.empty() || !std::regex_search(whole, std::regex("^(" + pattern + ")"));
    }
    network.blocks.push_back(
        {.name = name, .first = first, .parameters = parameters_, .operators = flow_.Take()});
  }

 private:
  std::vector<ParameterUse> Uses(const std::string& name, bool bias) const {
    std::vector<ParameterUse> uses = {flow_.Use(name + ".weight")};
    if (bias) {
      uses.push_back(flow_.Use(name + ".bias"));
    }
    return uses;
  }

  const Row& row_;
  Parameters parameters_ = {};
  Flow flow_;
};

void AddImages(Network& network, const Row& row, const std::string& label) {
  network.batch = {{.name = "images", .elements = 3 * row.Number("img") * row.Number("img")},
                   {.name = label, .indices = true}};
}

std::vector<std::int64_t> Numbers(const Row& row, std::string_view key) {
  std::vector<std::int64_t> numbers;
  for (const Json& number : *row.Config().Find(key)->AsArray()) {
    numbers.push_back(*number.AsInteger());
  }
  return numbers;
}

// The batch's images, (batch, 3, side, side).
Value ImageInput(Images& images, const Row& row) {
  return images.Add({.kind = OperatorKind::kImages,
                     .name = "images",
                     .widths = {3, row.Number("img"), row.Number("img")}});
}

struct ResidualSize {
  std::int64_t in = 1;
  std::int64_t width = 1;
  std::int64_t out = 1;
  std::int64_t stride = 1;
};

// He et al. 2015, figure 5: two convolutions, or three of which the first and last have kernel 1.
void ResidualBlock(Images& images, const ResidualSize& size, bool bottleneck) {
  const auto norm = [&](const std::string& name, Value x, std::int64_t channels) {
    return images.Norm(OperatorKind::kBatchNorm, name, x, channels);
  };
  const auto convolution = [&](const std::string& name, Value x, ConvolutionSize conv) {
    conv.bias = false;
    return images.Convolution(name, x, conv);
  };
  const Value x = Flow::Input();
  Value shortcut = x;
  if (size.stride != 1 || size.in != size.out) {
    shortcut = convolution("down.0", x, {size.in, size.out, 1, size.stride});
    shortcut = norm("down.1", shortcut, size.out);
  }
  Value y = 0;
  if (bottleneck) {
    y = images.Relu(norm("b1", convolution("c1", x, {size.in, size.width, 1, 1}), size.width));
    y = images.Relu(
        norm("b2", convolution("c2", y, {size.width, size.width, 3, size.stride}), size.width));
    y = norm("b3", convolution("c3", y, {size.width, size.out, 1, 1}), size.out);
  } else {
    y = images.Relu(
        norm("b1", convolution("c1", x, {size.in, size.width, 3, size.stride}), size.width));
    y = norm("b2", convolution("c2", y, {size.width, size.width, 3, 1}), size.width);
  }
  y = images.Add({.kind = OperatorKind::kAdd, .inputs = {y, shortcut}, .in_place = true});
  images.Relu(y);
}

}  // namespace

Network ResNet(const Row& row) {
  const bool bottleneck = row.Flag("bottleneck");
  const std::int64_t width = row.Number("w");
  Network network;
  {
    Images stem(row);
    Value x = stem.Convolution("stem", ImageInput(stem, row), {3, width, 7, 2, false});
    x = stem.Relu(stem.Norm(OperatorKind::kBatchNorm, "bn", x, width));
    stem.Add(
        {.kind = OperatorKind::kMaxPool, .name = "pool", .inputs = {x}, .kernel = 3, .stride = 2});
    stem.Finish(network);
  }
  std::int64_t in = width;
  std::int64_t number = 0;
  std::int64_t stage_width = width;
  for (const std::int64_t blocks : Numbers(row, "stages")) {
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::int64_t out = bottleneck ? 4 * stage_width : stage_width;
      Images block(row);
      ResidualBlock(block, {in, stage_width, out, i == 0 && number > 0 ? 2 : 1}, bottleneck);
      block.Finish(network, "blocks.{}", number++);
      in = out;
    }
    stage_width *= 2;
  }
  Images head(row);
  const Value pooled =
      head.Add({.kind = OperatorKind::kMeanPool, .name = "pool", .inputs = {Flow::Input()}});
  const Value logits = head.Linear("fc", pooled, in, row.Number("V"));
  head.Add({.kind = OperatorKind::kLoss, .name = "loss", .inputs = {logits}});
  head.Finish(network);
  AddImages(network, row, "labels");
  return network;
}

namespace {

// Ho et al. 2020, appendix B; with the sizes of one level.
class UNetBuilder {
 public:
  explicit UNetBuilder(const Row& row)
      : row_(row), images_(row), width_(row.Number("w")), groups_(row.Number("groups")) {}

  Network Build();

 private:
  Value GroupNorm(const std::string& name, Value x, std::int64_t channels) {
    return images_.Norm(OperatorKind::kGroupNorm, name, x, channels, groups_);
  }

  Value Residual(const std::string& name, Value x, std::int64_t in, std::int64_t out) {
    Value y = images_.Silu(GroupNorm(name + ".n1", x, in));
    y = images_.Convolution(name + ".c1", y, {in, out});
    const Value time = images_.Linear(name + ".t", images_.Silu(time_), 4 * width_, out);
    y = images_.Add({.kind = OperatorKind::kBroadcastAdd, .inputs = {y, time}});
    y = images_.Silu(GroupNorm(name + ".n2", y, out));
    y = images_.Convolution(name + ".c2", y, {out, out});
    if (in != out) {
      x = images_.Convolution(name + ".sk", x, {in, out, 1});
    }
    return images_.Add({.kind = OperatorKind::kAdd, .inputs = {y, x}});
  }

  Value Attention(const std::string& name, Value x, std::int64_t channels) {
    const Value qkv = images_.Convolution(name + ".qkv", GroupNorm(name + ".n", x, channels),
                                          {channels, 3 * channels, 1});
    const Value mixed =
        images_.Add({.kind = OperatorKind::kPixelAttention, .name = name, .inputs = {qkv}});
    const Value out = images_.Convolution(name + ".o", mixed, {channels, channels, 1});
    return images_.Add({.kind = OperatorKind::kAdd, .inputs = {x, out}});
  }

  Value Down(Value x);
  Value Up(Value x);

  const Row& row_;
  Images images_;
  std::int64_t width_;
  std::int64_t groups_;
  Value time_ = 0;
  std::int64_t channels_ = 0;
  std::vector<std::pair<Value, std::int64_t>> skips_ = {};
};

Value UNetBuilder::Down(Value x) {
  const std::vector<std::int64_t> multipliers = Numbers(row_, "mult");
  int number = 0;
  for (std::size_t level = 0; level < multipliers.size(); ++level) {
    for (std::int64_t i = 0; i < row_.Number("nres"); ++i) {
      const std::int64_t out = width_ * multipliers[level];
      x = Residual("down." + std::to_string(number++), x, channels_, out);
      channels_ = out;
      skips_.emplace_back(x, channels_);
    }
    if (level + 1 < multipliers.size()) {
      x = images_.Convolution("down." + std::to_string(number++), x, {channels_, channels_, 3, 2});
      skips_.emplace_back(x, channels_);
    }
  }
  return x;
}

Value UNetBuilder::Up(Value x) {
  const std::vector<std::int64_t> multipliers = Numbers(row_, "mult");
  int number = 0;
  for (std::size_t level = multipliers.size(); level-- > 0;) {
    for (std::int64_t i = 0; i <= row_.Number("nres"); ++i) {
      const auto [skip, channels] = skips_.back();
      skips_.pop_back();
      x = images_.Add({.kind = OperatorKind::kConcatChannels, .inputs = {x, skip}});
      const std::int64_t out = width_ * multipliers[level];
      x = Residual("up." + std::to_string(number++), x, channels_ + channels, out);
      channels_ = out;
    }
    if (level > 0) {
      x = images_.Add({.kind = OperatorKind::kUpsample, .inputs = {x}});
      x = images_.Convolution("up." + std::to_string(number++), x, {channels_, channels_});
    }
  }
  return x;
}

Network UNetBuilder::Build() {
  const Value times =
      images_.Add({.kind = OperatorKind::kImages, .name = "times", .widths = {width_}});
  time_ = images_.Silu(images_.Linear("te.0", times, width_, 4 * width_));
  time_ = images_.Linear("te.2", time_, 4 * width_, 4 * width_);
  Value x = images_.Convolution("inc", ImageInput(images_, row_), {3, width_});
  channels_ = width_;
  skips_.emplace_back(x, channels_);
  x = Down(x);
  x = Residual("m1", x, channels_, channels_);
  x = Attention("ma", x, channels_);
  x = Residual("m2", x, channels_, channels_);
  x = Up(x);
  x = images_.Convolution("out", images_.Silu(GroupNorm("no", x, channels_)), {channels_, 3});
  images_.Add({.kind = OperatorKind::kMeanSquare, .name = "loss", .inputs = {x}});
  Network network;
  images_.Finish(network);
  network.batch = {
      {.name = "images", .elements = 3 * row_.Number("img") * row_.Number("img")},
      {.name = "times", .elements = width_},
      {.name = "noise", .elements = 3 * row_.Number("img") * row_.Number("img"), .float32 = true}};
  return network;
}

}  // namespace

Network UNet(const Row& row) {
  return UNetBuilder(row).Build();
}

Network Lstm(const Row& row) {
  const std::int64_t width = row.Number("h");
  const std::int64_t layers = row.Number("L");
  Parameters parameters;
  Append(parameters, "emb", Embedding(row.Number("V"), width));
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string suffix = "_l" + std::to_string(layer);
    Append(parameters, "rnn", Tensor("weight_ih" + suffix, {4 * width, width}));
    Append(parameters, "rnn", Tensor("weight_hh" + suffix, {4 * width, width}));
    Append(parameters, "rnn", Tensor("bias_ih" + suffix, {4 * width}));
    Append(parameters, "rnn", Tensor("bias_hh" + suffix, {4 * width}));
  }
  Append(parameters, "head", Linear({row.Number("V"), width}, Divide::kNot, true));
  const std::string frozen = row.Text("freeze");
  for (Parameter& parameter : parameters) {
    parameter.trainable = frozen.empty() || !parameter.name.starts_with(frozen);
  }
  Flow flow(parameters);
  Value x = flow.Embedding("emb");
  Operator rnn = {.kind = OperatorKind::kLstm,
                  .name = "rnn",
                  .inputs = {x},
                  .widths = {width},
                  .dropout = row.Positive("p")};
  for (std::int64_t i = 0; i < 4 * layers; ++i) {
    rnn.parameters.push_back({.parameter = static_cast<std::int32_t>(1 + i)});
  }
  x = flow.Append(std::move(rnn));
  x = flow.Linear("head", x);
  flow.Append({.kind = OperatorKind::kLoss,
               .name = "loss",
               .inputs = {x},
               .transposed = !row.Flag("batch_first")});
  Network network;
  network.blocks.push_back({.parameters = parameters, .operators = flow.Take()});
  network.batch = {{.name = "ids", .per_token = true, .indices = true},
                   {.name = "labels", .per_token = true, .indices = true}};
  return network;
}

}  // namespace fourpiles::truth
