// The stack machine of pickles: one function a group of steps. The letters of the steps and what
// they do stand in CPython's Lib/pickletools.py.

#include <bit>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "tensors/pickle.h"
#include "tensors/pickle_bytes.h"
#include "tensors/pickle_stack.h"

namespace fourpiles {
namespace {

using Kind = PickleKind;

constexpr std::uint64_t kHighestProtocol = 5;

class PickleMachine {
 public:
  PickleMachine(const ByteSource& source, std::int64_t begin, const PickleLimits& limits)
      : bytes_(source, begin), stack_(limits), most_steps_(limits.steps) {}

  Pickle Run() {
    while (!stopped_ && !stack_.HasFault()) {
      stack_.SetStep(bytes_.Place());
      Step();
    }
    return std::move(stack_).Finish(bytes_.Place());
  }

 private:
  void FailCutShort() { stack_.Fail("the end within a step", "expected more bytes"); }

  void Step() {
    std::uint8_t letter = 0;
    if (!bytes_.Take(letter)) {
      stack_.Fail("the end", "expected the step STOP before it");
    } else if (++steps_ > most_steps_) {
      stack_.Fail(fmt::format("more than {} steps", most_steps_), "expected fewer");
    } else if (!Frames(letter) && !Constants(letter) && !Texts(letter) && !Data(letter) &&
               !Containers(letter) && !Filling(letter) && !Memory(letter) && !Calls(letter)) {
      stack_.Fail(fmt::format("the step {:#04x}", letter), "expected one of protocol 0 to 5");
    }
  }

  // ---- steps; each group gives false for a letter of another one

  bool Frames(std::uint8_t letter) {
    std::uint64_t number = 0;
    switch (letter) {
      case 0x80:  // PROTO
        if (!bytes_.TakeNumber(1, number)) {
          FailCutShort();
        } else if (number > kHighestProtocol) {
          stack_.Fail(fmt::format("pickle protocol {}", number), "expected 0 to 5");
        }
        return true;
      case 0x95:  // FRAME: how many bytes to read at once, which changes nothing
        if (!bytes_.TakeNumber(8, number)) {
          FailCutShort();
        }
        return true;
      case '.':
        stopped_ = stack_.Has(1);
        return true;
      default:
        return false;
    }
  }

  bool Constants(std::uint8_t letter) {
    switch (letter) {
      case 'N':
        stack_.PushNone();
        return true;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        stack_.PushNumber(letter == 0x88 ? 1 : 0, Kind::kBool);
        return true;
      case 'J':  // BININT
        TakeInteger(4);
        return true;
      case 'K':  // BININT1
        TakeInteger(1);
        return true;
      case 'M':  // BININT2
        TakeInteger(2);
        return true;
      case 'G':  // BINFLOAT
        TakeReal();
        return true;
      case 0x8A:  // LONG1
        TakeLong(1);
        return true;
      case 0x8B:  // LONG4
        TakeLong(4);
        return true;
      case 'I':
      case 'L':
      case 'F':
        TakeDigits(letter);
        return true;
      default:
        return false;
    }
  }

  void TakeInteger(int bytes) {
    std::uint64_t number = 0;
    if (!bytes_.TakeNumber(bytes, number)) {
      return FailCutShort();
    }
    // BININT alone has a sign.
    stack_.PushNumber(bytes == 4 ? static_cast<std::int32_t>(number)
                                 : static_cast<std::int64_t>(number));
  }
  void TakeReal() {
    std::uint64_t number = 0;
    if (!bytes_.TakeNumber(8, number)) {
      return FailCutShort();
    }
    stack_.PushNumber(std::bit_cast<std::int64_t>(__builtin_bswap64(number)), Kind::kFloat);
  }
  // A number of so many bytes as the first ones say, in two's complement.
  void TakeLong(int length_bytes) {
    std::uint64_t length = 0;
    if (!TakeLength(length_bytes, length)) {
      return FailCutShort();
    }
    if (length > 8) {
      const std::size_t begin = stack_.Texts().size();
      if (!stack_.HasRoomFor(length)) {
        return;
      }
      return bytes_.TakeText(length, stack_.Texts()) ? stack_.PushTextFrom(begin, Kind::kBigInteger)
                                                     : FailCutShort();
    }
    std::uint64_t number = 0;
    if (!bytes_.TakeNumber(static_cast<int>(length), number)) {
      return FailCutShort();
    }
    const int unused = 64 - 8 * static_cast<int>(length);
    stack_.PushNumber(length == 0 ? 0 : static_cast<std::int64_t>(number << unused) >> unused);
  }
  void TakeDigits(std::uint8_t letter) {
    if (!bytes_.TakeLine(line_)) {
      return FailCutShort();
    }
    std::int64_t number = 0;
    if (letter == 'F') {
      stack_.PushNumber(std::bit_cast<std::int64_t>(std::strtod(line_.c_str(), nullptr)),
                        Kind::kFloat);
    } else if (letter == 'I' && (line_ == "00" || line_ == "01")) {
      stack_.PushNumber(line_ == "01" ? 1 : 0, Kind::kBool);
    } else if (ReadDigits(line_, number)) {
      stack_.PushNumber(number);
    } else {
      stack_.Fail("a number of other signs than digits, or a large one", "expected up to 64 bits");
    }
  }

  bool Texts(std::uint8_t letter) {
    switch (letter) {
      case 'S':  // STRING, in quotes
        if (!bytes_.TakeLine(line_)) {
          FailCutShort();
        } else if (line_.size() < 2 || line_.front() != line_.back()) {
          stack_.Fail("a text without its quotes", "expected them");
        } else {
          stack_.PushText(TextOfStringLine(std::string_view(line_).substr(1, line_.size() - 2)));
        }
        return true;
      case 'V':  // UNICODE
        bytes_.TakeLine(line_) ? stack_.PushText(TextOfUnicodeLine(line_)) : FailCutShort();
        return true;
      case 'U':   // SHORT_BINSTRING
      case 0x8C:  // SHORT_BINUNICODE
        TakeText(1);
        return true;
      case 'T':  // BINSTRING
      case 'X':  // BINUNICODE
        TakeText(4);
        return true;
      case 0x8D:  // BINUNICODE8
        TakeText(8);
        return true;
      default:
        return false;
    }
  }

  bool Data(std::uint8_t letter) {
    switch (letter) {
      case 'C':  // SHORT_BINBYTES
        TakeBytes(1);
        return true;
      case 'B':  // BINBYTES
        TakeBytes(4);
        return true;
      case 0x8E:  // BINBYTES8
      case 0x96:  // BYTEARRAY8
        TakeBytes(8);
        return true;
      case 0x97:  // NEXT_BUFFER
      case 0x98:  // READONLY_BUFFER
        stack_.Fail("data beside the pickle", "expected none");
        return true;
      default:
        return false;
    }
  }

  // Of as many bytes as are there.
  bool TakeLength(int length_bytes, std::uint64_t& length) {
    return bytes_.TakeNumber(length_bytes, length) &&
           length <= static_cast<std::uint64_t>(bytes_.Left());
  }
  void TakeText(int length_bytes) {
    std::uint64_t length = 0;
    if (!TakeLength(length_bytes, length)) {
      return FailCutShort();
    }
    if (stack_.HasRoomFor(length)) {
      const std::size_t begin = stack_.Texts().size();
      bytes_.TakeText(length, stack_.Texts()) ? stack_.PushTextFrom(begin) : FailCutShort();
    }
  }
  void TakeBytes(int length_bytes) {
    std::uint64_t length = 0;
    if (!bytes_.TakeNumber(length_bytes, length) || !bytes_.Skip(length)) {
      return FailCutShort();
    }
    stack_.PushNumber(static_cast<std::int64_t>(length), Kind::kBytes);
  }

  bool Containers(std::uint8_t letter) {
    switch (letter) {
      case '(':
        stack_.Mark();
        return true;
      case ')':  // EMPTY_TUPLE
        stack_.PushTuple({});
        return true;
      case ']':
        stack_.PushList(Kind::kList, {});
        return true;
      case '}':
        stack_.PushList(Kind::kDict, {});
        return true;
      case 0x8F:  // EMPTY_SET
        stack_.PushList(Kind::kSet, {});
        return true;
      case 0x85:  // TUPLE1 to TUPLE3
      case 0x86:
      case 0x87:
        TakeTuple(letter - 0x84U);
        return true;
      case 't':
        stack_.PushTuple(stack_.PopMarked());
        return true;
      case 'l':
        stack_.PushList(Kind::kList, stack_.PopMarked());
        return true;
      case 0x91:  // FROZENSET
        stack_.PushList(Kind::kSet, stack_.PopMarked());
        return true;
      case 'd':
        TakeDict();
        return true;
      default:
        return false;
    }
  }

  void TakeTuple(std::size_t count) {
    if (stack_.Has(count)) {
      stack_.PushTuple(stack_.PopLast(count));
    }
  }
  void TakeDict() {
    const std::vector<PickleRef> items = stack_.PopMarked();
    stack_.PushList(Kind::kDict, {});
    stack_.Put(items, Kind::kDict);
  }

  bool Filling(std::uint8_t letter) {
    switch (letter) {
      case 'a':  // APPEND
        PutLast(1, Kind::kList);
        return true;
      case 's':  // SETITEM
        PutLast(2, Kind::kDict);
        return true;
      case 'e':  // APPENDS
        stack_.Put(stack_.PopMarked(), Kind::kList);
        return true;
      case 'u':  // SETITEMS
        stack_.Put(stack_.PopMarked(), Kind::kDict);
        return true;
      case 0x90:  // ADDITEMS
        stack_.Put(stack_.PopMarked(), Kind::kSet);
        return true;
      case 'b':  // BUILD
        stack_.Build();
        return true;
      default:
        return false;
    }
  }

  void PutLast(std::size_t count, Kind kind) {
    if (stack_.Has(count + 1)) {
      stack_.Put(stack_.PopLast(count), kind);
    }
  }

  bool Memory(std::uint8_t letter) {
    std::uint64_t index = 0;
    switch (letter) {
      case 'h':  // BINGET
      case 'q':  // BINPUT
        bytes_.TakeNumber(1, index) ? Memo(letter == 'h', index) : FailCutShort();
        return true;
      case 'j':  // LONG_BINGET
      case 'r':  // LONG_BINPUT
        bytes_.TakeNumber(4, index) ? Memo(letter == 'j', index) : FailCutShort();
        return true;
      case 'g':  // GET
      case 'p':  // PUT
        if (TakeIndex(index)) {
          Memo(letter == 'g', index);
        }
        return true;
      case 0x94:  // MEMOIZE
        stack_.RememberNext();
        return true;
      case '0':
        stack_.Drop();
        return true;
      case '1':  // POP_MARK
        stack_.PopMarked();
        return true;
      case '2':  // DUP
        stack_.Duplicate();
        return true;
      default:
        return false;
    }
  }

  // Takes a value from the memo, or puts one there.
  void Memo(bool take, std::uint64_t index) {
    take ? stack_.Recall(index) : stack_.Remember(index);
  }

  bool TakeIndex(std::uint64_t& index) {
    std::int64_t number = 0;
    if (!bytes_.TakeLine(line_) || !ReadDigits(line_, number) || number < 0) {
      stack_.Fail("no index of the memo", "expected digits and a line feed");
      return false;
    }
    index = static_cast<std::uint64_t>(number);
    return true;
  }
  bool Calls(std::uint8_t letter) {
    switch (letter) {
      case 'c':  // GLOBAL
        TakeGlobal();
        return true;
      case 0x93:  // STACK_GLOBAL
        GlobalOfStack();
        return true;
      case 'R':  // REDUCE
        Reduce(2);
        return true;
      case 0x81:  // NEWOBJ
        Reduce(2, true);
        return true;
      case 0x92:  // NEWOBJ_EX: with named arguments
        Reduce(3, true);
        return true;
      case 'i':  // INST
        TakeInstance();
        return true;
      case 'o':  // OBJ
        ReduceMarked();
        return true;
      case 'Q':  // BINPERSID
        TakeId();
        return true;
      case 'P':  // PERSID
        TakePersistentId();
        return true;
      case 0x82:  // EXT1, EXT2, EXT4
      case 0x83:
      case 0x84:
        stack_.Fail("a code of the extension registry", "expected a name");
        return true;
      default:
        return false;
    }
  }

  void TakeGlobal() {
    std::string module;
    if (!bytes_.TakeLine(module) || !bytes_.TakeLine(line_)) {
      return FailCutShort();
    }
    stack_.PushGlobal(module, line_);
  }
  void GlobalOfStack() {
    if (stack_.Has(2)) {
      const std::string name = Word(stack_.Pop());
      stack_.PushGlobal(Word(stack_.Pop()), name);
    }
  }
  // Python would refuse other values than texts here; which ones they are is told. Of a text no
  // more than a global may have, and a byte that makes it too long.
  std::string Word(PickleRef value) const {
    const Pickle& pickle = stack_.Values();
    switch (pickle.Kind(value)) {
      case Kind::kText:
        return std::string(pickle.Text(value).substr(0, PickleStack::kLongestGlobal + 1));
      case Kind::kInteger:
        return std::to_string(pickle.Integer(value));
      default:
        return fmt::format("<{}>", Name(pickle.Kind(value)));
    }
  }

  // A callable, its arguments and perhaps named ones.
  void Reduce(std::size_t values, bool is_new = false) {
    if (stack_.Has(values)) {
      const std::vector<PickleRef> parts = stack_.PopLast(values);
      const PickleRef named = values == 3 ? parts[2] : kNoValue;
      is_new ? stack_.PushNewObject(parts[0], parts[1], named)
             : stack_.PushReduced(parts[0], parts[1]);
    }
  }
  // The module and name on two lines, the arguments on the stack.
  void TakeInstance() {
    const std::vector<PickleRef> arguments = stack_.PopMarked();
    TakeGlobal();
    ReduceTop(arguments);
  }
  // The callable and its arguments on the stack.
  void ReduceMarked() {
    std::vector<PickleRef> items = stack_.PopMarked();
    if (items.empty()) {
      return stack_.Fail("a call of nothing", "expected a class or function");
    }
    stack_.PushTuple(std::span(items).subspan(1));
    if (!stack_.HasFault()) {
      stack_.PushReduced(items.front(), stack_.Pop());
    }
  }
  void ReduceTop(std::span<const PickleRef> arguments) {
    stack_.PushTuple(arguments);
    if (!stack_.HasFault()) {
      Reduce(2);
    }
  }
  // The value on top becomes the name of an object beside the pickle.
  void TakeId() {
    if (stack_.Has(1)) {
      stack_.PushTuple(stack_.PopLast(1), Kind::kPersistentId);
    }
  }
  void TakePersistentId() {
    if (!bytes_.TakeLine(line_)) {
      return FailCutShort();
    }
    stack_.PushText(line_);
    TakeId();
  }

  PickleBytes bytes_;
  PickleStack stack_;
  std::int64_t most_steps_;
  std::int64_t steps_ = 0;
  bool stopped_ = false;
  std::string line_ = {};
};

}  // namespace

Pickle ReadPickle(const ByteSource& source, std::int64_t begin, const PickleLimits& limits) {
  return PickleMachine(source, begin, limits).Run();
}

}  // namespace fourpiles
