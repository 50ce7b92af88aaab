#pragma once

// JSON read piece by piece from a source, none of it kept: for the header of a safetensors file,
// which may have 100 MB and a million tensors. As strict as ReadJson(): the grammar of RFC 8259 and
// nothing more, UTF-8, a limit of nesting. That each key of an object stands once is left to the
// caller, who keeps the keys.
//
//   JsonScanner json(source, begin, end);
//   json.EnterObject();
//   while (json.NextKey(key)) {
//     if (key == "shape") { … } else { json.SkipValue(); }
//   }
//   if (!json.Finish()) { … json.Fault() … }
//
// A fault is kept, and every later call answers false or nothing: a loop ends, and one question at
// the end is enough. Each value must be read or skipped before the next key or element.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/json_fault.h"

namespace fourpiles {

enum class JsonKind { kObject, kArray, kString, kNumber, kBool, kNull, kNone };

class JsonScanner {
 public:
  static constexpr std::size_t kMostDepth = 64;

  // The bytes of the source from `begin` to `end`, which must lie within it.
  JsonScanner(const ByteSource& source, std::int64_t begin, std::int64_t end);

  // The most bytes of a string or number, which else may be as long as the source.
  void LimitText(std::size_t bytes) { longest_text_ = bytes; }

  // The kind of the value that comes next; kNone after a fault.
  JsonKind NextKind();

  // Each reads the value that comes next, and is a fault where it is of another kind.
  void EnterObject();
  void EnterArray();
  void ReadString(std::string& text);  // decoded
  // A number: its value, where it is written without point and exponent and fits 64 bits;
  // none of −0, which is a number of floating point.
  std::optional<std::int64_t> ReadNumber();
  // Any value, with all that it holds. Returns what it is: "the string \"F32\"", "an array".
  std::string SkipValue();

  // To the next member or element; false at the end of the object or array, which is left.
  bool NextKey(std::string& key);
  bool NextElement();

  // Nothing but white space is left, or there was a fault: the end of a file of many documents.
  bool AtEnd();
  // Nothing but white space may be left. False after any fault.
  bool Finish();
  bool HasFault() const { return has_fault_; }
  // The byte counts from `begin`.
  const JsonFault& Fault() const { return fault_; }
  std::int64_t Place() const { return buffer_place_ + static_cast<std::int64_t>(next_); }

 private:
  static constexpr int kEnd = -1;

  int Peek();  // the next character, or kEnd
  void Fill();
  int PeekBehindSpace();
  bool Take(char expected);
  bool TakeSeparator(char close);
  void Enter(char open);
  void Refuse(std::string found, std::string expected);
  void RefuseNext(std::string expected);  // what stands next
  void AppendPlain(std::string& text);
  void ReadEscape(std::string& text);
  std::optional<std::uint32_t> ReadHexDigits();
  void CheckLength(const std::string& text);
  std::string ReadNumberText();
  std::string SkipScalar(JsonKind kind);
  void SkipWord(std::string_view word);
  JsonKind NextOf(std::vector<JsonKind>& open);

  const ByteSource& source_;
  std::int64_t source_place_;  // of the next byte to read from the source
  std::int64_t source_end_;
  std::size_t longest_text_ = std::string::npos;
  std::int64_t buffer_place_ = 0;  // of the buffer's first byte, from `begin`
  std::vector<char> buffer_;
  std::size_t filled_ = 0;
  std::size_t next_ = 0;
  std::vector<bool> is_first_;  // of each object or array that is open: nothing was read of it yet
  bool has_fault_ = false;
  JsonFault fault_ = {};
};

}  // namespace fourpiles
