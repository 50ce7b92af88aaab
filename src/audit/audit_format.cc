#include "audit/audit_format.h"

#include "base/try.h"
#include "formats/any_format.h"

namespace fourpiles {
namespace {

constexpr std::string_view kScaled = ":scaled";

}  // namespace

Result<AuditFormat> FindAuditFormat(std::string_view name, std::string_view where) {
  const bool scaled = name.ends_with(kScaled);
  const std::string_view plain = scaled ? name.substr(0, name.size() - kScaled.size()) : name;
  TRY(const AnyFormat format, FindAnyFormat(plain, where));
  if (const auto* const block = std::get_if<BlockFormat>(&format)) {
    if (scaled) {
      return WrongUsage({.where = std::string(where),
                         .found = std::string(name),
                         .expected = "expected a format of one value before \":scaled\"",
                         .hint = "block formats have scales of their own"});
    }
    return AuditFormat{.name = FullName(*block), .format = format};
  }
  std::string full(std::get<NumberFormat>(format).name);
  return AuditFormat{
      .name = full + std::string(scaled ? kScaled : ""), .format = format, .scaled = scaled};
}

}  // namespace fourpiles
