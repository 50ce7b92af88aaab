#include "plan/job.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

Settings Typed(const std::map<std::string, std::string>& typed) {
  const Settings settings = TypedSettings(typed);
  return settings;
}

std::string Message(const Error& error) {
  return error.text.where + ": " + error.text.found + ", " + error.text.expected;
}

std::string Refused(JobKind kind, std::string_view model,
                    const std::map<std::string, std::string>& typed) {
  const Result<Job> job = MakeJob(kind, model, Typed(typed));
  return job ? "accepted" : Message(job.error());
}

TEST(Job, FillsInTheDefaultsAndNamesThem) {
  const Job job = MakeJob(JobKind::kTrain, "llama-3.1-8b", {}).value();
  EXPECT_EQ(job.training.recipe.names.id, "mixed-bf16");
  EXPECT_EQ(job.training.optimizer.names.id, "adamw");
  EXPECT_EQ(job.training.sequence_length, 2048);
  EXPECT_EQ(job.training.activation_format.name, "bfloat16");
  EXPECT_EQ(job.defaults.front().key, "devices");
  EXPECT_EQ(job.defaults.size(), 12U);
}

TEST(Job, TheDefaultSequenceIsNoLongerThanTheModels) {
  // GPT-2: n_positions 1024 (openai-community/gpt2 config.json).
  EXPECT_EQ(MakeJob(JobKind::kTrain, "gpt2", {})->training.sequence_length, 1024);
}

TEST(Job, SettingsOverrideDefaults) {
  const Job job = MakeJob(JobKind::kTrain, "1B",
                          Typed({{"layers", "32"},
                                 {"width", "4096"},
                                 {"micro-batch-size", "4"},
                                 {"activation-format", "e4m3"},
                                 {"device", "80GB"},
                                 {"zero", "3"},
                                 {"devices", "64"}}))
                      .value();
  EXPECT_TRUE(job.bare_count);
  EXPECT_EQ(job.model.network.num_hidden_layers, 32);
  EXPECT_EQ(job.training.activation_format.name, "float8_e4m3fn");
  EXPECT_EQ(job.device->memory, Bytes(80'000'000'000));
  EXPECT_EQ(job.training.layout.zero, 3);
}

TEST(Job, RefusesWhatItDoesNotKnowByName) {
  EXPECT_EQ(Refused(JobKind::kTrain, "llama-3.1-9b", {}),
            "MODEL: unknown model \"llama-3.1-9b\", did you mean \"llama-3.1-8b\"?");
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"recipe", "mixed-bf61"}}),
            "--recipe: unknown recipe \"mixed-bf61\", did you mean \"mixed-bf16\"?");
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"optimizer", "adm"}}),
            "--optimizer: unknown optimizer \"adm\", did you mean \"adam\"?");
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"device", "h100-sxn-80gb"}}),
            "--device: unknown device \"h100-sxn-80gb\", did you mean \"h100-sxm-80gb\"?");
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"device", "80GB"}, {"solve", "bacth"}}),
            "--solve: unknown word \"bacth\", did you mean \"batch\"?");
}

TEST(Job, RefusesSizesOutOfRange) {
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"micro-batch-size", "0"}}),
            "--micro-batch-size: \"0\" is out of range, expected a whole number from 1 to "
            "1099511627776");
  EXPECT_EQ(
      Refused(JobKind::kTrain, "1B", {{"micro-batch-size", "-3"}}),
      "--micro-batch-size: \"-3\" is not a count, expected one such as 4096, 1.5B, 70b or 1e12");
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"zero", "4"}}),
            "--zero: \"4\" is out of range, expected a whole number from 0 to 3");
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"layers", "0"}, {"width", "8"}}),
            "--layers: \"0\" is out of range, expected a whole number from 1 to 10000");
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"device", "0GB"}}),
            "--device: a device of 0 bytes, expected a size with its unit, such as 80GB");
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"device", "80"}}),
            "--device: a device of 80 bytes, expected a size with its unit, such as 80GB");
  EXPECT_EQ(Refused(JobKind::kTrain, "0", {}),
            "MODEL: \"0\" is out of range, expected a whole number from 1 to 2^53");
}

TEST(Job, RefusesSettingsThatDoNotGoTogether) {
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"layers", "32"}}),
            "--width: missing, expected --layers and --width together");
  EXPECT_EQ(Refused(JobKind::kTrain, "gpt2", {{"layers", "32"}}),
            "--layers: set for gpt2, expected only with a bare parameter count");
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"solve", "batch"}}),
            "--solve: no device to fit, expected --device");
}

TEST(Job, EverySettingNotBuiltIsRefusedAndNeverIgnored) {
  int refused = 0;
  for (const JobKind kind : {JobKind::kTrain, JobKind::kFinetune, JobKind::kServe}) {
    for (const Setting& setting : SettingsOf(kind)) {
      if (!setting.built) {
        const std::string name(setting.name);
        EXPECT_EQ(Refused(kind, "1B", {{name, "2"}}), "--" + name + ": not in this version, ");
        ++refused;
      }
    }
  }
  EXPECT_GE(refused, 1);
  EXPECT_EQ(Refused(JobKind::kTrain, "1B", {{"activations", "exact"}}),
            "--activations: the operators of 1B are not known, expected lower-bound");
  EXPECT_EQ(Refused(JobKind::kTrain, "https://example.org/config.json", {}),
            "MODEL: \"https://example.org/config.json\": not in this version, ");
}

TEST(Job, ServingIsLaidOutOverDevices) {
  const Job job = MakeJob(JobKind::kServe, "llama-3.1-8b",
                          Typed({{"devices", "8"}, {"pipeline-parallel", "2"}}))
                      .value();
  EXPECT_EQ(job.serving.layout.tensor, 4);
  EXPECT_EQ(job.serving.layout.data, 1);
  EXPECT_EQ(Refused(JobKind::kServe, "llama-3.1-8b", {{"tensor-parallel", "3"}}),
            "--tensor-parallel: 3 devices cannot share the heads, expected a number that "
            "divides the heads, or that they divide");
  EXPECT_EQ(Refused(JobKind::kServe, "llama-3.1-8b", {{"pipeline-parallel", "33"}}),
            "--pipeline-parallel: 33 stages of 32 layers, expected at most 32");
}

TEST(Job, AnEngineRefusesWhatItLacks) {
  EXPECT_EQ(Refused(JobKind::kServe, "gpt2", {{"engine", "vllm"}, {"kv-format", "q8_0"}}),
            "--kv-format: vllm keeps no cache in q8_0, expected one that it has");
  EXPECT_EQ(Refused(JobKind::kServe, "gpt2", {{"engine", "vllm"}, {"gpu-layers", "3"}}),
            "--gpu-layers: vllm has no such setting, expected --engine llama.cpp");
  EXPECT_EQ(Refused(JobKind::kServe, "gpt2", {{"ubatch", "512"}}),
            "--ubatch: no engine to tell, expected --engine");
}

TEST(Job, TheCacheIsInTheFormatThatIsComputedIn) {
  const Job small =
      MakeJob(JobKind::kServe, "gpt2", Typed({{"weights-format", "fp4_e2m1"}})).value();
  EXPECT_EQ(small.serving.key_format->name, "bfloat16");
  const Job half = MakeJob(JobKind::kServe, "gpt2", Typed({{"weights-format", "fp16"}})).value();
  EXPECT_EQ(half.serving.value_format->name, "float16");
}

TEST(Job, AMissingFileIsInputAndAnUnknownWordUsage) {
  const Error file = MakeJob(JobKind::kTrain, "nowhere/model.safetensors", {}).error();
  EXPECT_EQ(file.kind, ErrorKind::kInput);
  EXPECT_EQ(Message(file), "nowhere/model.safetensors: no such file, expected a file or a folder");
  EXPECT_EQ(MakeJob(JobKind::kTrain, "nonsense", {}).error().kind, ErrorKind::kUsage);
}

TEST(JobFile, KeysAreThoseOfTheSettings) {
  const Json job = ReadJson(R"({"model": "1B", "micro_batch_size": 4, "recipe": "fp32",
                               "device": null})",
                            "job.json")
                       .value();
  const Settings settings = SettingsFromJson(job, JobKind::kTrain, "job.json").value();
  EXPECT_EQ(settings.at("micro-batch-size").text, "4");
  EXPECT_EQ(settings.at("micro-batch-size").where, "job.json: micro_batch_size");
  EXPECT_EQ(settings.at("model").text, "1B");
  EXPECT_FALSE(settings.contains("device"));
}

TEST(JobFile, RefusesUnknownKeysAndOtherValues) {
  const auto refused = [](std::string_view text) {
    const Result<Settings> settings =
        SettingsFromJson(ReadJson(text, "job.json").value(), JobKind::kTrain, "job.json");
    return settings ? "accepted" : Message(settings.error());
  };
  EXPECT_EQ(refused(R"({"micro_batch": 4})").substr(0, 21), "job.json: micro_batch");
  EXPECT_EQ(refused(R"({"zero": [1]})"), "job.json: zero: an array, expected a string or a number");
  EXPECT_EQ(refused(R"({"kv_format": "fp8"})").substr(0, 19), "job.json: kv_format");
  EXPECT_EQ(refused(R"({"zero": true})"), "job.json: zero: true, expected a string or a number");
  EXPECT_EQ(refused(R"({"sequence_parallel": 1})"),
            "job.json: sequence_parallel: 1, expected true or false");
  EXPECT_EQ(refused(R"({"sequence_parallel": false})"), "accepted");
}

TEST(Job, RefusesStepsThatNoImplementationTakes) {
  EXPECT_EQ(Refused(JobKind::kTrain, "gpt2", {{"recompute", "every:0"}}),
            "--recompute: \"0\" is out of range, expected a whole number from 1 to 4096");
  EXPECT_EQ(Refused(JobKind::kTrain, "gpt2", {{"recompute", "some"}}),
            "--recompute: unknown word \"some\", expected none, selective, selective-op, full or "
            "every:K");
  EXPECT_EQ(Refused(JobKind::kTrain, "gpt2", {{"attention", "eager"}, {"implementation", "llm.c"}}),
            "--attention: llm.c has no eager attention, expected flash");
  EXPECT_EQ(Refused(JobKind::kTrain, "gpt2", {{"implementation", "pytrch"}}),
            "--implementation: unknown implementation \"pytrch\", did you mean \"pytorch\"?");
}

}  // namespace
}  // namespace fourpiles
