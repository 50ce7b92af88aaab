// The budget half of the lesson: what the piles of a model of 1.5, 7 and 1 billion parameters
// weigh, and what fits 80 GB. GB are 10^9 bytes.

#include "base/check.h"
#include "plan/lesson.h"
#include "plan/solve.h"

namespace fourpiles {
namespace {

constexpr double kGb = 1e9;

// Settings as they would be typed: {{"recipe", "fp32"}, …}.
using Typed = std::map<std::string, std::string>;

Budget BudgetFor(JobKind kind, std::string_view model, const Typed& typed) {
  const Settings settings = TypedSettings(typed);
  const Result<Job> job = MakeJob(kind, model, settings);
  CHECK(job.has_value());
  Result<Budget> budget = BudgetOf(*job);
  CHECK(budget.has_value());
  return *std::move(budget);
}

Budget Training(std::string_view model, const Typed& typed) {
  return BudgetFor(JobKind::kTrain, model, typed);
}

double Gb(Bytes bytes) {
  return static_cast<double>(bytes.value()) / kGb;
}

class Topic {
 public:
  Topic(std::vector<LessonFigure>& figures, std::string name)
      : figures_(figures), name_(std::move(name)) {}

  void Exactly(std::string what, double taught, double computed, std::string unit = {}) {
    figures_.push_back({.topic = name_,
                        .what = std::move(what),
                        .taught = taught,
                        .computed = computed,
                        .unit = std::move(unit)});
  }
  void ToDigits(std::string what, double taught, double computed, int digits) {
    figures_.push_back({.topic = name_,
                        .what = std::move(what),
                        .taught = taught,
                        .computed = computed,
                        .agreement = Agreement::kToDigits,
                        .digits = digits,
                        .unit = "GB"});
  }

 private:
  std::vector<LessonFigure>& figures_;
  std::string name_;
};

struct TaughtRecipe {
  const char* what;
  const char* recipe;
  const char* optimizer;
  double bytes_per_parameter;
  double gb;
};
constexpr TaughtRecipe kTaughtRecipes[] = {
    {"float32 + SGD", "fp32", "sgd", 8, 12},
    {"float32 + SGD with momentum", "fp32", "sgd-momentum", 12, 18},
    {"float32 + Adam", "fp32", "adam", 16, 24},
    {"mixed precision + Adam", "mixed-fp16", "adam", 16, 24},
};

void AddState(std::vector<LessonFigure>& figures) {
  Topic topic(figures, "Training state, 1.5 billion parameters");
  constexpr double kParameters = 1.5e9;
  for (const TaughtRecipe& taught : kTaughtRecipes) {
    const Budget budget =
        Training("1.5B", {{"recipe", taught.recipe}, {"optimizer", taught.optimizer}});
    const std::string what = taught.what;
    const auto bytes = static_cast<double>(budget.state.value());
    topic.Exactly(what + ", bytes a parameter", taught.bytes_per_parameter, bytes / kParameters);
    topic.Exactly(what, taught.gb, bytes / kGb, "GB");
  }
  const auto file = [](const char* format) {
    return Gb(BudgetFor(JobKind::kServe, "1.5B", {{"weights-format", format}}).state);
  };
  const double state =
      Gb(Training("1.5B", {{"recipe", "mixed-fp16"}, {"optimizer", "adam"}}).state);
  topic.Exactly("weights in float16", 3, file("float16"), "GB");
  topic.Exactly("training ÷ a float32 file", 4, state / file("float32"));
  topic.Exactly("training ÷ a float16 file", 8, state / file("float16"));
}

void AddSevenBillion(std::vector<LessonFigure>& figures) {
  Topic topic(figures, "7 billion parameters");
  const Budget serving = BudgetFor(JobKind::kServe, "7B", {{"weights-format", "float16"}});
  const Budget training =
      Training("7B", {{"recipe", "mixed-fp16"}, {"optimizer", "adam"}, {"device", "80GB"}});
  topic.Exactly("weights to serve in float16", 14, Gb(serving.state), "GB");
  topic.Exactly("training state, mixed precision + Adam", 112, Gb(training.state), "GB");
  topic.Exactly("fits 80 GB (1 yes, 0 no)", 0, *training.verdict == Fit::kDoesNotFit ? 0 : 1);
}

void AddBatch(std::vector<LessonFigure>& figures) {
  Topic topic(figures, "1 billion parameters on 80 GB, 32 layers × 2,048 tokens × width 4,096");
  Typed typed = {{"recipe", "mixed-fp16"},      {"optimizer", "adam"}, {"layers", "32"},
                 {"sequence-length", "2048"},   {"width", "4096"},     {"device", "80GB"},
                 {"activations", "lower-bound"}};
  const Budget one = Training("1B", typed);
  topic.ToDigits("activations of a sample in float16", 0.54, Gb(one.saved_activations), 2);
  topic.Exactly("state", 16, Gb(one.state), "GB");
  topic.Exactly("left for activations", 64, Gb(one.job.device->memory - one.state), "GB");
  typed["solve"] = "batch";
  const Budget solved = Training("1B", typed);
  topic.Exactly("largest batch", 119, static_cast<double>(solved.solution.value_or(0)));
  typed["activation-format"] = "float8_e4m3fn";
  const Budget halved = Training("1B", typed);
  topic.Exactly("largest batch, activations halved", 238,
                static_cast<double>(halved.solution.value_or(0)));
  topic.Exactly("state, activations halved", 16, Gb(halved.state), "GB");
}

}  // namespace

std::vector<LessonFigure> LessonBudgets() {
  std::vector<LessonFigure> figures;
  AddState(figures);
  AddSevenBillion(figures);
  AddBatch(figures);
  return figures;
}

}  // namespace fourpiles
