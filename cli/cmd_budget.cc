// fourpiles train, finetune, serve

#include "cli/budget_command.h"
#include "cli/commands.h"

namespace fourpiles::cli {

Command TrainCommand() {
  return {
      .name = "train",
      .summary = "budget of a training step",
      .examples =
          "fourpiles train llama-3.1-8b --device h100-sxm-80gb\n"
          "fourpiles train 1.5B --recipe mixed-fp16 --optimizer adam\n"
          "fourpiles train 7B --device 80GB --zero 3 --solve devices\n"
          "fourpiles train ./my-model -b 4 -s 4096 --explain",
      .options = BudgetOptions(JobKind::kTrain),
      .run = [](const Arguments& arguments) { return AnswerBudget(JobKind::kTrain, arguments); }};
}

Command FinetuneCommand() {
  return {.name = "finetune",
          .summary = "budget of fine-tuning: adapters, or frozen parts",
          .examples =
              "fourpiles finetune qwen2.5-7b --device a100-80gb --recipe bf16\n"
              "fourpiles finetune qwen2.5-7b --device rtx-4090-24gb --recipe bf16 "
              "--adapter lora:rank=16 --recompute full\n"
              "fourpiles finetune gpt2 --adapter none\n"
              "fourpiles finetune gpt2 --train-only last:2+head",
          .options = BudgetOptions(JobKind::kFinetune),
          .run = [](const Arguments& arguments) {
            return AnswerBudget(JobKind::kFinetune, arguments);
          }};
}

Command ServeCommand() {
  return {
      .name = "serve",
      .summary = "budget of serving: weights and KV cache",
      .examples =
          "fourpiles serve llama-3.1-8b --device rtx-4090-24gb --context-length 8192\n"
          "fourpiles serve llama-3.1-70b --device h100 --weights-format fp8 --context-length 8192 "
          "--solve concurrency\n"
          "fourpiles serve llama-3.1-8b --engine all --device h100 --context-length 8192",
      .options = BudgetOptions(JobKind::kServe),
      .run = [](const Arguments& arguments) { return AnswerBudget(JobKind::kServe, arguments); }};
}

}  // namespace fourpiles::cli
