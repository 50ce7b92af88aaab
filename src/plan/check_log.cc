#include "plan/check_log.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/log_job.h"
#include "plan/serving.h"

namespace fourpiles {
namespace {

constexpr double kEstimateError = 0.08;  // of compute buffers, plan/llamacpp_compute.h

enum class Rule { kAsPrinted, kFromPool, kEstimate, kShown };

// By the id without "swa_"; the first that fits.
struct IdRule {
  std::string_view begins;
  Rule rule;
};
constexpr IdRule kRules[] = {
    {"kv_", Rule::kAsPrinted},
    {"cells", Rule::kAsPrinted},
    {"recurrent_", Rule::kAsPrinted},
    {"weights_device_bytes", Rule::kAsPrinted},
    {"file_bytes", Rule::kAsPrinted},
    {"output_bytes", Rule::kAsPrinted},
    {"compute_", Rule::kEstimate},
    {"streams", Rule::kAsPrinted},
    {"breakdown_", Rule::kEstimate},
    {"blocks", Rule::kFromPool},
    {"cpu_blocks", Rule::kFromPool},
    {"cache_tokens", Rule::kFromPool},
    {"max_concurrency", Rule::kFromPool},
    {"tokens", Rule::kFromPool},
    {"full_tokens", Rule::kFromPool},
};

Rule RuleOf(std::string_view id) {
  constexpr std::string_view kWindow = "swa_";
  id.remove_prefix(id.starts_with(kWindow) ? kWindow.size() : 0);
  const auto* const rule = std::ranges::find_if(
      kRules, [id](const IdRule& each) { return id.starts_with(each.begins); });
  return rule == std::end(kRules) ? Rule::kShown : rule->rule;
}

// The stage in "PP1_TP0" or "PP1 TP0".
std::size_t StageOf(std::string_view device) {
  const std::size_t at = device.find("PP");
  std::size_t stage = 0;
  if (at != std::string_view::npos) {
    std::from_chars(device.data() + at + 2, device.data() + device.size(), stage);
  }
  return stage;
}

// What the log says of the pool that the rest of it follows from: vLLM's bytes, SGLang's tokens.
std::string_view GivenOf(LogEngine engine) {
  return engine == LogEngine::kVllm ? "available_bytes" : "cache_tokens";
}

// That figure of the stage: the least of its ranks, which are alike.
const LogFigure* GivenPool(const EngineLog& log, std::size_t stage) {
  const LogFigure* least = nullptr;
  for (const LogFigure& figure : log.figures) {
    if (figure.id == GivenOf(log.engine) && StageOf(figure.device) == stage &&
        (least == nullptr || figure.value < least->value)) {
      least = &figure;
    }
  }
  return least;
}

// What the plan says where every pool is the logged one, so many halves of the last digit larger.
// The caches are as large as the smallest pool makes them.
std::vector<EngineFigure> FiguresFromPools(const ServingPlan& plan, const EngineLog& log,
                                           const RequestLoad& load, int halves) {
  std::vector<EngineFigure> figures;
  std::int64_t tokens = kLargestAmount;
  for (std::size_t stage = 0; stage < plan.ranks.size(); ++stage) {
    ServingRank rank = plan.ranks[stage];
    const LogFigure* const given = GivenPool(log, stage);
    if (given == nullptr || !rank.figures) {
      continue;
    }
    const std::int64_t amount = std::llround(given->value + halves * given->half);
    rank.pool = rank.fill ? rank.fill(Bytes(amount)) : CachePool{.tokens = amount};
    if (rank.pool->tokens < tokens) {
      tokens = rank.pool->tokens;
      figures = rank.figures(rank, load);
    }
  }
  return figures;
}

const EngineFigure* Find(const std::vector<EngineFigure>& figures, std::string_view id,
                         std::string_view device) {
  const auto found = std::ranges::find_if(figures, [&](const EngineFigure& figure) {
    return figure.id == id && figure.device == device;
  });
  return found == figures.end() ? nullptr : &*found;
}

struct Predictions {
  LogEngine engine = LogEngine::kLlamacpp;
  std::vector<std::string> devices = {};
  std::vector<std::vector<EngineFigure>> ranks = {};
  // From the logged pools: less half a digit, as printed, more half a digit.
  std::vector<EngineFigure> pools[3] = {};

  const EngineFigure* Of(const LogFigure& logged) const;
};

const EngineFigure* Predictions::Of(const LogFigure& logged) const {
  std::size_t rank = 0;
  std::string device;
  if (engine != LogEngine::kLlamacpp) {
    rank = std::min(StageOf(logged.device), ranks.size() - 1);
  } else if (IsHostBuffer(logged.device)) {
    device = "host";
  } else if (!logged.device.empty()) {
    const auto place = std::ranges::find(devices, DeviceOfBuffer(logged.device));
    rank = static_cast<std::size_t>(place - devices.begin());
    device = fmt::format("GPU {}", rank);
  }
  if (rank >= ranks.size()) {
    return nullptr;
  }
  const EngineFigure* const own = Find(ranks[rank], logged.id, device);
  return own != nullptr ? own : Find(ranks[rank], logged.id, "");
}

Predictions PredictionsOf(const EngineLog& log, const Job& job, const ServingPlan& plan) {
  Predictions predictions = {.engine = log.engine, .devices = LlamacppDevices(log)};
  const RequestLoad load = LoadOf(job.serving);
  for (const ServingRank& rank : plan.ranks) {
    predictions.ranks.push_back(rank.figures ? rank.figures(rank, load)
                                             : std::vector<EngineFigure>());
  }
  for (int halves = -1; halves <= 1; ++halves) {
    predictions.pools[halves + 1] = FiguresFromPools(plan, log, load, halves);
  }
  return predictions;
}

bool EqualAsPrinted(const LogFigure& logged, double low, double high) {
  const double slack = 1e-9 * std::abs(logged.value);
  return high >= logged.value - logged.half - slack && low <= logged.value + logged.half + slack;
}

Agreement AgreementOf(Rule rule, const LogRow& row) {
  if (EqualAsPrinted(row.logged, *row.predicted, *row.predicted)) {
    return Agreement::kEqual;
  }
  if (rule == Rule::kEstimate) {
    return std::abs(row.error) <= kEstimateError ? Agreement::kClose : Agreement::kOff;
  }
  return rule == Rule::kAsPrinted ? Agreement::kOff : Agreement::kShown;
}

double ErrorOf(double predicted, double logged) {
  if (logged == 0) {
    return predicted == 0 ? 0 : 1;
  }
  return predicted / logged - 1;
}

// What llama.cpp prints of weights on the host is the mapped range of the file, which may hold
// other tensors.
bool IsMappedRange(const LogFigure& logged) {
  return logged.id == "weights_host_bytes" ||
         (logged.id.starts_with("breakdown_") && IsHostBuffer(logged.device));
}

LogRow RowOf(const LogFigure& logged, const Predictions& predictions) {
  LogRow row = {.logged = logged};
  const Rule rule = IsMappedRange(logged) ? Rule::kShown : RuleOf(logged.id);
  const auto& [fewer, printed, more] = predictions.pools;
  if (const auto* const figure = Find(printed, logged.id, "");
      figure != nullptr && (rule == Rule::kFromPool || rule == Rule::kAsPrinted) &&
      logged.id != GivenOf(predictions.engine)) {
    row.predicted = figure->value;
    row.error = ErrorOf(figure->value, logged.value);
    row.agreement =
        EqualAsPrinted(logged, Find(fewer, logged.id, "")->value, Find(more, logged.id, "")->value)
            ? Agreement::kEqual
            : Agreement::kOff;
  } else if (const EngineFigure* const own = predictions.Of(logged)) {
    row.predicted = own->value;
    row.error = ErrorOf(own->value, logged.value);
    row.agreement = AgreementOf(rule, row);
  }
  return row;
}

// Where the log's model is not this one, what differs says so before the figures do.
std::vector<std::string> ModelWarnings(const EngineLog& log, const Network& network) {
  struct Shape {
    const char* name;
    const char* what;
    std::optional<std::int64_t> own;
  };
  const Shape shapes[] = {{"n_layer", "layers", network.num_hidden_layers},
                          {"n_embd", "values a token", network.hidden_size},
                          {"n_vocab", "words", network.vocab_size}};
  std::vector<std::string> warnings;
  for (const Shape& shape : shapes) {
    const auto logged = log.model.find(shape.name);
    if (logged == log.model.end() || !shape.own) {
      continue;
    }
    std::int64_t count = 0;
    const std::string& text = logged->second;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (fault == std::errc() && end == text.data() + text.size() && count != *shape.own) {
      warnings.push_back(fmt::format("the log's model has {} {}, this one {}: is it the same?",
                                     count, shape.what, *shape.own));
    }
  }
  return warnings;
}

std::int64_t& CounterOf(LogCheck& check, Agreement agreement) {
  switch (agreement) {
    case Agreement::kEqual:
      return check.equal;
    case Agreement::kClose:
      return check.close;
    case Agreement::kOff:
      return check.off;
    case Agreement::kShown:
    case Agreement::kNotPredicted:
      break;
  }
  return check.others;
}

}  // namespace

std::string_view Name(Agreement agreement) {
  switch (agreement) {
    case Agreement::kEqual:
      return "equal";
    case Agreement::kClose:
      return "close";
    case Agreement::kOff:
      return "off";
    case Agreement::kShown:
      return "shown";
    case Agreement::kNotPredicted:
      break;
  }
  return "not_predicted";
}

Result<LogCheck> CheckLog(const EngineLog& log, const Job& job) {
  TRY(const ServingPlan plan, PlanServing(job));
  const Predictions predictions = PredictionsOf(log, job, plan);
  LogCheck check = {.warnings = log.warnings};
  std::ranges::move(ModelWarnings(log, job.model.network), std::back_inserter(check.warnings));
  check.rows.reserve(log.figures.size());
  for (const LogFigure& logged : log.figures) {
    check.rows.push_back(RowOf(logged, predictions));
    ++CounterOf(check, check.rows.back().agreement);
  }
  return check;
}

}  // namespace fourpiles
