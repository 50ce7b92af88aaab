#include "cli/commands.h"

namespace fourpiles::cli {

std::span<const Command> Commands() {
  static const Command commands[] = {
      TrainCommand(), FinetuneCommand(),   ServeCommand(),  PlanCommand(),      kInspectCommand,
      AuditCommand(), kFormatsCommand,     kRoundCommand,   kAccumulateCommand, kScaleCommand,
      kModelsCommand, kDevicesCommand,     kRecipesCommand, kOptimizersCommand, kValidateCommand,
      kLessonCommand, kCompletionsCommand, kManCommand,
  };
  return commands;
}

}  // namespace fourpiles::cli
