#include "base/json_fault.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace fourpiles {
namespace {

using nlohmann::json;

constexpr int kNumberOutOfRange = 406;  // nlohmann's id of that exception

// What nlohmann says, "syntax error while parsing value - invalid literal; last read: 'tru}'" or
// "… - unexpected ']'; expected '[', '{', or a literal", without what the place says already.
JsonFault Explain(std::string_view what) {
  what.remove_prefix(std::min(what.size(), what.find(" - ") + 3));
  what = what.substr(0, what.find("; last read: "));
  const std::size_t split = what.find("; expected ");
  JsonFault fault = {.found = std::string(what.substr(0, split))};
  if (split != std::string_view::npos) {
    fault.expected = what.substr(split + 2);
  }
  if (fault.expected == "expected ']'" || fault.expected == "expected '}'") {
    fault.expected.insert(sizeof("expected"), "',' or ");
  }
  return fault;
}

// The length of the token that "unexpected string literal" and the like speak of. `token` is the
// text of strings and numbers alone.
std::size_t LengthOfUnexpected(std::string_view found, std::string_view token) {
  if (found == "unexpected string literal" || found == "unexpected number literal") {
    return token.size();
  }
  if (found == "unexpected true literal" || found == "unexpected null literal") {
    return sizeof("true") - 1;
  }
  return found == "unexpected false literal" ? sizeof("false") - 1 : 1;
}

// Listens to nlohmann's parser, keeps nothing but the first error, and stops there.
class FaultListener : public nlohmann::json_sax<json> {
 public:
  explicit FaultListener(std::size_t size) : size_(size) {}
  const JsonFault& Fault() const { return fault_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }

  // `position` counts the bytes read, the last of `token` included.
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    if (error.id == kNumberOutOfRange) {
      fault_ = {position - token.size(), "the number " + token,
                "expected one that a double can hold, below 1.8e308"};
      return false;
    }
    fault_ = Explain(error.what());
    if (fault_.found == "unexpected end of input") {
      fault_.byte = size_;
    } else if (fault_.found.starts_with("unexpected ")) {  // sound, but in the wrong place
      fault_.byte = position - LengthOfUnexpected(fault_.found, token);
    } else {  // went wrong at the last byte read
      fault_.byte = position - 1;
    }
    return false;
  }

 private:
  std::size_t size_;
  JsonFault fault_ = {.byte = size_, .found = "malformed JSON"};
};

}  // namespace

JsonFault FirstJsonFault(std::string_view text) {
  // nlohmann takes a NUL for the end of the input, and JSON has no place for one.
  const std::string_view sound = text.substr(0, text.find('\0'));
  FaultListener listener(sound.size());
  json::sax_parse(sound.begin(), sound.end(), &listener);
  if (sound.size() < text.size() && listener.Fault().byte == sound.size()) {
    return {sound.size(), "a NUL byte", ""};
  }
  return listener.Fault();
}

}  // namespace fourpiles
