#include "report/job_json.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

// What is printed as a job is a job file that gives the same job again.
TEST(JobJson, ReadsBackAsAJobFile) {
  struct Case {
    JobKind kind;
    const char* model;
    std::map<std::string, std::string> typed;
  };
  const Case cases[] = {
      {JobKind::kTrain,
       "1B",
       {{"layers", "32"}, {"width", "4096"}, {"device", "80GB"}, {"solve", "batch"}}},
      {JobKind::kTrain, "gpt2", {{"recipe", "bf16"}, {"zero", "2"}, {"devices", "8"}}},
      {JobKind::kFinetune, "qwen3-8b", {{"device", "h100"}}},
      {JobKind::kTrain, "qwen3-8b", {{"evaluate", "true"}}},
      {JobKind::kFinetune, "qwen3-8b", {{"adapter", "lora:targets=q_proj+v_proj,dropout=0.1"}}},
      {JobKind::kServe, "llama-3.1-8b", {{"kv-format-v", "fp8"}, {"concurrency", "7"}}},
  };
  for (const Case& c : cases) {
    const Settings settings = TypedSettings(c.typed);
    const Json::Object printed = JobJson(MakeJob(c.kind, c.model, settings).value());
    const Settings read = SettingsFromJson(printed, c.kind, "job.json").value();
    const Job again = MakeJob(c.kind, read.at("model").text, read).value();
    EXPECT_EQ(WriteJson(JobJson(again)), WriteJson(printed));
  }
}

// Where a file stands for a name, the path is printed: the file may differ from the catalogue.
TEST(JobJson, KeepsThePathOfARecordOfTheUsers) {
  Job job = MakeJob(JobKind::kTrain, "gpt2", {}).value();
  job.from_file = true;
  job.settings = {{"model", {"my/config.json", "MODEL"}}, {"recipe", {"mine.json", "--recipe"}}};
  const Json json = JobJson(job);
  EXPECT_EQ(*json.Find("model")->AsString(), "my/config.json");
  EXPECT_EQ(*json.Find("recipe")->AsString(), "mine.json");
}

}  // namespace
}  // namespace fourpiles
