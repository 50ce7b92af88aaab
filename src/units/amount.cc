#include "base/check.h"
#include "fourpiles/units.h"

namespace fourpiles {

void FailAmount() {
  FailCheck(__FILE__, __LINE__, "amount within 64 bits");
}

}  // namespace fourpiles
