#pragma once

// A start-up log beside its predictions, line by line.

#include <string>

#include "base/json.h"
#include "plan/check_log.h"

namespace fourpiles {

// What heads the table: where the log stands, and the job that was predicted.
struct LogCheckHead {
  std::string path = {};
  const EngineLog* log = nullptr;
  const Job* job = nullptr;
};

std::string LogCheckText(const LogCheckHead& head, const LogCheck& check);
Json::Object LogCheckJson(const LogCheckHead& head, const LogCheck& check);

}  // namespace fourpiles
