#pragma once

// A job: a model, and every setting that shapes its budget, with the defaults filled in.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/adapter.h"
#include "model/catalogue.h"
#include "plan/device.h"
#include "plan/layout.h"
#include "plan/sample_lengths.h"
#include "plan/serving_job.h"
#include "plan/settings.h"
#include "plan/weight_scheme.h"
#include "step/optimizer.h"
#include "step/play.h"
#include "step/recipe.h"
#include "step/state.h"

namespace fourpiles {

// What to find, with everything else fixed: the largest that fits, or for devices the fewest.
enum class Unknown { kMicroBatchSize, kSequenceLength, kDevices, kConcurrency, kContextLength };
std::string_view Name(Unknown unknown);  // the job's key: "micro_batch_size"
std::string_view Word(Unknown unknown);  // as --solve takes it: "batch"

// What the samples of a batch are filled up to.
enum class Padding { kLongest, kMax, kNone };
std::string_view Name(Padding padding);  // "longest"

// The samples of the data, where their lengths were given.
struct TrainingData {
  std::string file = {};
  SampleLengths lengths = {};
  Padding padding = Padding::kLongest;
  bool is_packed = false;     // into sequences without filling
  bool drops_longer = false;  // samples that pass the limit, which else end there
  // Where samples end, if anywhere: --sequence-length as typed.
  std::optional<std::int64_t> limit = {};
};

// Whether every sequence of a batch has as many tokens as the limit.
inline bool FillsLimit(const TrainingData& data) {
  return data.is_packed || data.padding == Padding::kMax;
}

struct TrainingJob {
  Recipe recipe = {};
  std::string recipe_word = {};  // as typed; empty: the default
  Optimizer optimizer = {};
  std::int64_t micro_batch_size = 1;
  std::int64_t sequence_length = 1;
  std::int64_t gradient_accumulation = 1;
  NumberFormat activation_format = {};  // of a lower bound
  bool lower_bound = false;             // of each layer its output and no more
  std::string implementation = {};
  Profile profile = {};
  std::optional<AttentionKind> attention = {};  // where it was chosen
  std::optional<LossKind> loss = {};
  std::int64_t loss_chunks = 1;
  Recompute recompute = {};
  StepKernels step_kernels = StepKernels::kFused;
  std::optional<Adapter> adapter = {};    // which the model's network has already
  std::string freeze = {};                // as typed; empty: nothing, or what the adapter does
  std::string train_only = {};            // the same
  std::optional<WeightScheme> base = {};  // of frozen linear layers; else as the recipe has it
  std::string base_format = {};           // its name
  bool offloads_activations = false;      // to the host, between forward and backward pass
  bool offloads_optimizer = false;        // its states, and the step, are the host's
  bool offloads_parameters = false;       // they come layer by layer; with them the optimizer
  // Every micro-batch but the first is shorter, so that nothing held over from one counts.
  bool later_batches_are_shorter = false;
  bool expandable_segments = false;  // of PyTorch's allocator
  bool evaluates = false;            // a forward pass that keeps nothing, instead of a step
  bool first_step = false;           // whose optimizer has no states until its end
  Layout layout = {};
  std::optional<std::int64_t> shown_rank = {};  // else the one that has most
  std::shared_ptr<const TrainingData> data = {};
};

// A setting that was not set, and the value it got.
struct Default {
  std::string key = {};  // "micro_batch_size"
  std::string value = {};
};

struct Job {
  JobKind kind = JobKind::kTrain;
  Model model = {};
  bool bare_count = false;  // of the model no more is known than its parameters
  bool from_file = false;   // the model is a file or a folder
  std::optional<Device> device = {};
  std::int64_t devices = 1;
  std::optional<Bytes> host_memory = {};  // of one host
  TrainingJob training = {};              // unless kind is kServe
  ServingJob serving = {};                // when kind is kServe
  std::optional<Unknown> solve = {};
  Settings settings = {};              // as typed
  std::vector<Default> defaults = {};  // what was not set and shaped the answer
};

// Opens the model and reads the settings. Errors: kUsage for settings that are unknown, out of
// range, not built, or do not go together; kInput for files.
Result<Job> MakeJob(JobKind kind, std::string_view model, const Settings& settings);

// The two halves of it, for several jobs of one model: the model, and the rest of the settings.
Result<Job> OpenJob(JobKind kind, std::string_view model, const Settings& settings);
Result<Job> ReadJob(Job opened, const Settings& settings);

}  // namespace fourpiles
