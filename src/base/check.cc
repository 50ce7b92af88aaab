#include "base/check.h"

namespace fourpiles {

void FailCheck(const char* file, int line, const char* condition) {
  throw CheckFailure(std::string(file) + ":" + std::to_string(line) + ": " + condition);
}

}  // namespace fourpiles
