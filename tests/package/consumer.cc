// Uses the installed library: 70,000 becomes 70,144 in bfloat16.

#include <fourpiles/formats.h>

int main() {
  const fourpiles::Result<fourpiles::NumberFormat> format = fourpiles::FindFormat("bf16");
  return format && fourpiles::Round(70000.0, *format) == 70144.0 ? 0 : 1;
}
