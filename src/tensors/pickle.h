#pragma once

// Pickles read without running them. A pickle is a program for a small stack machine: most of its
// steps put values together, some call what an import names (CPython, Lib/pickletools.py describes
// each step). Here every step only builds a description: a call becomes a value that says what
// would be called with what. Nothing is imported, nothing is called.
//
// A hostile pickle is small and wants to grow: by shared lists, huge lengths, deep nesting. Here a
// step makes at most one value, lengths are held against the bytes that are there, and nothing
// recurses; so time and memory are of the order of the bytes.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace fourpiles {

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kInteger,
  kBigInteger,  // beyond 64 bits: Text() has its bytes, the lowest first
  kFloat,
  kBytes,  // their number only
  kText,
  kTuple,
  kList,
  kDict,
  kSet,
  kGlobal,        // what an import names
  kReduced,       // a call that was not made
  kPersistentId,  // an object that lies beside the pickle
};

std::string_view Name(PickleKind kind);  // "none", "a list": for messages

// A value of a pickle: an index into it. Values that the pickle shares have one index.
using PickleRef = std::uint32_t;
inline constexpr PickleRef kNoValue = UINT32_MAX;

// Why a pickle cannot be read further.
struct PickleFault {
  std::int64_t byte = 0;  // of the source
  std::string found = {};
  std::string expected = {};
};

class Pickle {
 public:
  // Every value can be asked everything; kNoValue is none.
  PickleKind Kind(PickleRef value) const { return At(value).kind; }
  // Of a bool or integer; else 0. Of bytes, how many.
  std::int64_t Integer(PickleRef value) const;
  double Real(PickleRef value) const;
  // Of a text, any bytes; of a global, "module.name" with the module's name of Python 3. Else
  // empty.
  std::string_view Text(PickleRef value) const;
  // Of a tuple, list or set its elements; of a dict its keys and values in turn; of a persistent id
  // the value that it is. Of a reduced value what was set in it, as in a dict, or appended to it,
  // with kNoValue as key. Else empty.
  std::span<const PickleRef> Items(PickleRef value) const;

  // Of a reduced value: what would be called, with what, and the state that the object would take
  // (kNoValue: none).
  PickleRef Callable(PickleRef value) const { return Part(value, 0); }
  PickleRef Arguments(PickleRef value) const { return Part(value, 1); }
  PickleRef State(PickleRef value) const { return Part(value, 2); }
  // The name of what would be called; empty for other values, and for calls of what a call gave.
  std::string_view CallableName(PickleRef value) const;

  // The value that the pickle makes. kNoValue: it is broken.
  PickleRef Root() const { return root_; }
  // Everything that the pickle would import, as it is written there, each once.
  const std::vector<std::string>& Globals() const { return globals_; }
  // The first byte behind it.
  std::int64_t End() const { return end_; }
  const std::optional<PickleFault>& Fault() const { return fault_; }
  std::size_t ValueCount() const { return nodes_.size(); }

 private:
  friend class PickleStack;

  // Texts lie in texts_, tuples in refs_ (place and length); what can still grow lies in lists_.
  struct Node {
    PickleKind kind = PickleKind::kNone;
    std::uint32_t length = 0;
    std::int64_t number = 0;
  };
  const Node& At(PickleRef value) const {
    static constexpr Node kNone = {};
    return value < nodes_.size() ? nodes_[value] : kNone;
  }
  static constexpr std::size_t kParts = 3;  // of a reduced value before its items

  PickleRef Part(PickleRef value, std::size_t part) const;

  std::vector<Node> nodes_ = {};
  std::string texts_ = {};
  std::vector<PickleRef> refs_ = {};
  std::vector<std::vector<PickleRef>> lists_ = {};
  std::vector<std::string> globals_ = {};       // as written
  std::vector<std::string> global_names_ = {};  // by the names of Python 3
  PickleRef root_ = kNoValue;
  std::int64_t end_ = 0;
  std::optional<PickleFault> fault_ = {};
};

// How much a pickle may hold: a checkpoint of 500,000 tensors has 9 million values.
struct PickleLimits {
  std::int64_t steps = 50'000'000;
  std::size_t values = 10'000'000;
  std::size_t text_bytes = std::size_t{256} << 20;
};

// Reads the pickle that begins at a byte of the source, of protocol 0 to 5. A broken one is given
// as far as it goes, with its fault.
Pickle ReadPickle(const ByteSource& source, std::int64_t begin, const PickleLimits& limits = {});

// What a pickle is for, which decides what it may name.
enum class PickleUse {
  kStateDict,  // what PyTorch's weights_only loads (torch/_weights_only_unpickler.py) but for what
               // can change tensors behind their checks
  kTorchScript,  // and what an archive of TorchScript names, whose classes lie in the archive
  kDistributed,  // and the plain classes in the .metadata of torch.distributed.checkpoint
  kDeepSpeed,    // and those in the files of DeepSpeed's ranks
};

// Whether a pickle may name it, whatever it does with it. `name` as of Pickle::Globals().
bool IsKnownGlobal(std::string_view name, PickleUse use = PickleUse::kStateDict);

// Whether a name belongs to what runs commands or code, opens files or connections: "posix.system",
// "builtins.eval".
bool IsDangerousGlobal(std::string_view name);

// What the pickle would import and has no use for, in the order of Globals(). `builtins.getattr`
// has a use where all that the pickle does with it is to name members of the enums of that use, as
// Python 3.11 writes them: getattr(MEM_FORMAT_ENCODING, "TORCH_CONTIGUOUS_FORMAT").
std::vector<std::string_view> UnknownGlobals(const Pickle& pickle, PickleUse use);

}  // namespace fourpiles
