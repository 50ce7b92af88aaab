#include "tensors/pickle.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/byte_source.h"

namespace fourpiles {
namespace {

using namespace std::string_literals;

Pickle Read(const std::string& bytes, const PickleLimits& limits = {}) {
  return ReadPickle(MemorySource("x", std::as_bytes(std::span(bytes))), 0, limits);
}

std::string FaultOf(const std::string& bytes) {
  const Pickle pickle = Read(bytes);
  return pickle.Fault() ? pickle.Fault()->found : "";
}

// A value as Python would print it, without what it shares.
std::string Shown(const Pickle& pickle, PickleRef value) {
  std::string text;
  const auto list = [&](const char* opening, const char* closing) {
    text += opening;
    for (const PickleRef item : pickle.Items(value)) {
      text += (item == kNoValue ? "-" : Shown(pickle, item)) + " ";
    }
    return text + closing;
  };
  switch (pickle.Kind(value)) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return pickle.Integer(value) != 0 ? "True" : "False";
    case PickleKind::kInteger:
      return std::to_string(pickle.Integer(value));
    case PickleKind::kFloat:
      return std::to_string(pickle.Real(value));
    case PickleKind::kBytes:
      return std::to_string(pickle.Integer(value)) + " bytes";
    case PickleKind::kText:
      return "'" + std::string(pickle.Text(value)) + "'";
    case PickleKind::kBigInteger:
      return std::to_string(pickle.Text(value).size()) + " bytes of an integer";
    case PickleKind::kGlobal:
      return std::string(pickle.Text(value));
    case PickleKind::kTuple:
      return list("(", ")");
    case PickleKind::kList:
      return list("[", "]");
    case PickleKind::kDict:
      return list("{", "}");
    case PickleKind::kSet:
      return list("{{", "}}");
    case PickleKind::kPersistentId:
      return list("@", "");
    case PickleKind::kReduced:
      return Shown(pickle, pickle.Callable(value)) + Shown(pickle, pickle.Arguments(value)) +
             (pickle.State(value) == kNoValue ? "" : "|" + Shown(pickle, pickle.State(value))) +
             list(":", "");
  }
  return "";
}

std::string Value(const std::string& bytes) {
  const Pickle pickle = Read(bytes);
  return pickle.Fault() ? "fault: " + pickle.Fault()->found : Shown(pickle, pickle.Root());
}

// What CPython 3.11's pickle.dumps() wrote, protocols 0 to 5; the values stand beside.
TEST(Pickle, ReadsEveryProtocol) {
  const std::string expected = "{'a' [1 -2 1099511627776 ] 'b' (1.500000 True None ) 'c' 'hé' }";
  EXPECT_EQ(Value("(dp0\x0aVa\x0ap1\x0a(lp2\x0aI1\x0a"
                  "aI-2\x0a"
                  "aL1099511627776L\x0a"
                  "asVb\x0ap3\x0a(F1.5\x0aI01\x0aNtp4\x0asVc\x0ap5\x0aVh\xe9\x0ap6\x0as."s),
            expected);
  EXPECT_EQ(Value("}q\x00(X\x01\x00\x00\x00"
                  "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffL1099511627776L\x0a"
                  "eX\x01\x00\x00\x00"
                  "bq\x03(G?\xf8\x00\x00\x00\x00\x00\x00I01\x0aNtq\x04X\x01\x00\x00\x00"
                  "cq\x05X\x03\x00\x00\x00h\xc3\xa9q\x06u."s),
            expected);
  EXPECT_EQ(Value("\x80\x02}q\x00(X\x01\x00\x00\x00"
                  "aq\x01]q\x02(K\x01J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01"
                  "eX\x01\x00\x00\x00"
                  "bq\x03G?\xf8\x00\x00\x00\x00\x00\x00\x88N\x87q\x04X\x01\x00\x00\x00"
                  "cq\x05X\x03\x00\x00\x00h\xc3\xa9q\x06u."s),
            expected);
  EXPECT_EQ(Value("\x80\x03}q\x00(X\x01\x00\x00\x00"
                  "aq\x01]q\x02(K\x01J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01"
                  "eX\x01\x00\x00\x00"
                  "bq\x03G?\xf8\x00\x00\x00\x00\x00\x00\x88N\x87q\x04X\x01\x00\x00\x00"
                  "cq\x05X\x03\x00\x00\x00h\xc3\xa9q\x06u."s),
            expected);
  EXPECT_EQ(Value("\x80\x04\x95"
                  "7\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
                  "a\x94]\x94(K\x01J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01"
                  "e\x8c\x01"
                  "b\x94G?\xf8\x00\x00\x00\x00\x00\x00\x88N\x87\x94\x8c\x01"
                  "c\x94\x8c\x03h\xc3\xa9\x94u."s),
            expected);
  EXPECT_EQ(Value("\x80\x05\x95"
                  "7\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
                  "a\x94]\x94(K\x01J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01"
                  "e\x8c\x01"
                  "b\x94G?\xf8\x00\x00\x00\x00\x00\x00\x88N\x87\x94\x8c\x01"
                  "c\x94\x8c\x03h\xc3\xa9\x94u."s),
            expected);
}

// Each by hand, from Lib/pickletools.py.
TEST(Pickle, KnowsTheSteps) {
  EXPECT_EQ(Value("\x80\x02K\x05."), "5");
  EXPECT_EQ(Value("J\xff\xff\xff\xff."), "-1");
  EXPECT_EQ(Value("M\x01\x02."), "513");
  EXPECT_EQ(Value("\x8a\x00."s), "0");
  EXPECT_EQ(Value("\x8a\x01\xff."), "-1");
  EXPECT_EQ(Value("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s), "9 bytes of an integer");
  EXPECT_EQ(Value("\x8b\x02\x00\x00\x00\x00\x80."s), "-32768");
  EXPECT_EQ(Value("I01\n."), "True");
  EXPECT_EQ(Value("I-7\n."), "-7");
  EXPECT_EQ(Value("L12L\n."), "12");
  EXPECT_EQ(Value("F1.5\n."), "1.500000");
  EXPECT_EQ(Value("G?\xf8\x00\x00\x00\x00\x00\x00."s), "1.500000");
  EXPECT_EQ(Value("S'a\\n\\x41\\''\n."), "'a\nA''");
  EXPECT_EQ(Value("V\\u20ac\n."), "'€'");
  EXPECT_EQ(Value("U\x02hi."), "'hi'");
  EXPECT_EQ(Value("C\x03"
                  "abc."),
            "3 bytes");
  EXPECT_EQ(Value("(K\x01K\x02t."), "(1 2 )");
  EXPECT_EQ(Value("(K\x01K\x02l."), "[1 2 ]");
  EXPECT_EQ(Value("(K\x01K\x02"
                  "d."),
            "{1 2 }");
  EXPECT_EQ(Value("\x8f(K\x01K\x02\x90."), "{{1 2 }}");
  EXPECT_EQ(Value("K\x01K\x02\x86."), "(1 2 )");
  EXPECT_EQ(Value("]K\x01"
                  "aK\x02"
                  "a."),
            "[1 2 ]");
  EXPECT_EQ(Value("}K\x01K\x02s."), "{1 2 }");
  EXPECT_EQ(Value("K\x01q\x00"
                  "0h\x00."s),
            "1");
  EXPECT_EQ(Value("(K\x01K\x02"
                  "1N."),
            "None");
  EXPECT_EQ(Value("K\x01"
                  "2\x86."),
            "(1 1 )");
  EXPECT_EQ(Value("cos\nsystem\n(S'id'\ntR."), "os.system('id' ):");
  EXPECT_EQ(Value("(S'id'\nios\nsystem\n."), "os.system('id' ):");
  EXPECT_EQ(Value("(cos\nsystem\nS'id'\no."), "os.system('id' ):");
  EXPECT_EQ(Value("ca\nB\n)\x81}b."), "a.B()|{}:");
  EXPECT_EQ(Value("ca\nB\n)\x81K\x01"
                  "a."),
            "a.B():- 1 ");
  EXPECT_EQ(Value("\x8c\x02os\x8c\x06system\x93."), "os.system");
  EXPECT_EQ(Value("K\x01Q."), "@1 ");
  EXPECT_EQ(Value("Pabc\n."), "@'abc' ");
}

TEST(Pickle, SaysWhatIsWrong) {
  EXPECT_EQ(FaultOf(""), "the end");
  EXPECT_EQ(FaultOf("K\x01"), "the end");
  EXPECT_EQ(FaultOf("."), "a step on 1 values, of which there are 0");
  EXPECT_EQ(FaultOf("\x80\x09."), "pickle protocol 9");
  EXPECT_EQ(FaultOf("\xff"), "the step 0xff");
  EXPECT_EQ(FaultOf("h\x03."), "memo index 3, which was never set");
  EXPECT_EQ(FaultOf("t"), "no mark on the stack");
  EXPECT_EQ(FaultOf("K\x01(0K\x01"
                    "a."),
            "items for an integer");
  EXPECT_EQ(FaultOf("}K\x01"
                    "a."),
            "items for a dict");
  EXPECT_EQ(FaultOf("}(K\x01u."), "a key without a value");
  EXPECT_EQ(FaultOf("ctorch._utils\n_rebuild_tensor_v2\n)RK\x01K\x02s."), "items for a tensor");
  EXPECT_EQ(FaultOf("K\x01)R."), "a call of an integer");
  EXPECT_EQ(FaultOf("ca\nb\nK\x01R."), "an integer as arguments");
  EXPECT_EQ(FaultOf("K\x01}b."), "a state for an integer");
  EXPECT_EQ(FaultOf("\x82\x01."), "a code of the extension registry");
  EXPECT_EQ(FaultOf("\x97."), "data beside the pickle");
  EXPECT_EQ(FaultOf("X\xff\xff\xff\x7f"
                    "abc."),
            "the end within a step");
  EXPECT_EQ(FaultOf("\x8e\x00\x00\x00\x00\x00\x00\x00\x40"
                    "abc."s),
            "the end within a step");
  EXPECT_EQ(FaultOf("\x8b\xff\xff\xff\xff"
                    "abc."),
            "the end within a step");
  // Below a mark there is nothing to take.
  EXPECT_EQ(FaultOf("]K\x01(a."), "a step on 2 values, of which there are 0");
}

// A small file stays small: shared lists of 2^60 leaves, a memo index of 2^32 - 1, two million
// marks, 300,000 tuples in one another, a list in itself.
TEST(Pickle, StaysSmallWithBombs) {
  std::string laughs = "\x80\x02]q\x00"s;
  for (int i = 0; i < 60; ++i) {
    laughs += "](h"s + static_cast<char>(i) + "h" + static_cast<char>(i) + "eq" +
              static_cast<char>(i + 1);
  }
  EXPECT_EQ(FaultOf(laughs + "."), "");
  EXPECT_LT(Read(laughs + ".").ValueCount(), 100U);
  EXPECT_EQ(Value("K\x01r\xff\xff\xff\xff"
                  "0j\xff\xff\xff\xff."),
            "1");
  EXPECT_EQ(FaultOf(std::string(2'000'000, '(')), "the end");
  EXPECT_EQ(FaultOf(")" + std::string(300'000, '\x85') + "."), "");
  EXPECT_EQ(FaultOf("]q\x00h\x00"
                    "a."s),
            "");
  // Copies of what is on the stack, texts and integers that promise more than there is.
  for (const std::string& bomb :
       {"K\x01" + std::string(500, '2'), std::string(500, ']') + std::string(400, '\x86') + ".",
        "]q\x00("s + std::string(500, '2') + "e.", "\x8b\xff\xff\xff\x7f" + std::string(900, '1'),
        "\x8d\x00\x00\x00\x00\x00\x00\x00\x40"s + std::string(900, 'a'),
        "\x96\x00\x00\x00\x00\x00\x01\x00\x00"s + std::string(900, 'a')}) {
    EXPECT_LE(Read(bomb).ValueCount(), bomb.size());
  }
}

TEST(Pickle, KeepsToItsLimits) {
  const std::string bytes = "(" + std::string(100, ']') + "l.";
  EXPECT_EQ(Read(bytes, {.values = 50}).Fault()->found, "more than 50 values");
  EXPECT_EQ(Read(bytes, {.steps = 50}).Fault()->found, "more than 50 steps");
  EXPECT_EQ(Read("X\x05\x00\x00\x00hello."s, {.text_bytes = 4}).Fault()->found,
            "texts of more than 4 bytes");
  EXPECT_EQ(Read(std::string(60, '('), {.values = 50}).Fault()->found, "more than 50 marks");
  EXPECT_EQ(Read("]" + std::string(60, '2'), {.values = 50}).Fault()->found,
            "more than 50 values on the stack");
}

// With a state, PyTorch would load another tensor than the one that its arguments describe.
TEST(Pickle, RefusesAStateForATensor) {
  EXPECT_EQ(FaultOf("ctorch._utils\n_rebuild_tensor_v2\n)RNb."), "a state for a tensor");
  EXPECT_EQ(FaultOf("cnet\nNet\n)RNb."), "");
}

// CPython 3.11 says of each that the object has no such attribute, or takes no items; of those
// without a fault it makes what they say.
TEST(Pickle, PutsItemsIntoContainersOfTheirKind) {
  const std::string ordered = "ccollections\nOrderedDict\n)R";
  const std::string set = "cbuiltins\nset\n)R";
  EXPECT_EQ(FaultOf(ordered + "K\x01" + "a."), "items of a list for collections.OrderedDict");
  EXPECT_EQ(FaultOf(ordered + "(K\x01" + "e."), "items of a list for collections.OrderedDict");
  EXPECT_EQ(FaultOf(ordered + "(K\x01\x90."), "items of a set for collections.OrderedDict");
  EXPECT_EQ(FaultOf("ccollections\nCounter\n)R(K\x01" + "e."s),
            "items of a list for collections.Counter");
  EXPECT_EQ(FaultOf(set + "(K\x01" + "e."), "items of a list for builtins.set");
  EXPECT_EQ(FaultOf(set + "K\x01K\x01s."), "items of a dict for builtins.set");
  for (const std::string& fine : {ordered + "(e.", ordered + "K\x01K\x01s.", set + "(K\x01\x90.",
                                  "ccollections\ndefaultdict\n)RK\x01K\x01s."s}) {
    EXPECT_EQ(FaultOf(fine), "") << fine;
  }
}

// STACK_GLOBAL takes two texts of the memo, as often as it stands: 5 bytes each time.
TEST(Pickle, RefusesLongNamesOfImports) {
  EXPECT_EQ(FaultOf("\x80\x04X\xe8\x03\x00\x00"s + std::string(1000, 'a') + "q\x00\x8c\x01z\x93."s),
            "an import whose name has more than 1000 bytes");
  EXPECT_EQ(FaultOf("\x80\x04X\xe7\x03\x00\x00"s + std::string(999, 'a') + "q\x00\x8c\x01z\x93."s),
            "");
  EXPECT_EQ(FaultOf("c" + std::string(1001, 'a') + "\nz\n."),
            "an import whose name has more than 1000 bytes");
}

TEST(Pickle, NamesWhatItWouldImport) {
  const Pickle pickle = Read("cos\nsystem\ncos\nsystem\nc__builtin__\neval\nK*\x8c\x02os\x93.");
  EXPECT_EQ(pickle.Globals(), (std::vector<std::string>{"os.system", "__builtin__.eval", "42.os"}));
}

// torch/_weights_only_unpickler.py, _get_allowed_globals().
TEST(Pickle, KnowsWhatAStateDictNeeds) {
  for (const char* name :
       {"collections.OrderedDict", "torch._utils._rebuild_tensor_v2", "torch.FloatStorage",
        "torch.cuda.HalfStorage", "torch.float8_e4m3fn", "torch.storage.UntypedStorage",
        "torch._utils._rebuild_sparse_csr_tensor", "__builtin__.set", "torch.Size",
        "torch.LongTensor", "torch.sparse.FloatTensor"}) {
    EXPECT_TRUE(IsKnownGlobal(name)) << name;
  }
  for (const char* name :
       {"os.system", "builtins.eval", "__builtin__.getattr", "torch.load", "torch.Storage",
        "torch.hub.load", "torch._utils", "collections.OrderedDict.x", "argparse.Namespace", "",
        "torch.storage._load_from_bytes", "torch.FloatStorageX", "numpy.ndarray"}) {
    EXPECT_FALSE(IsKnownGlobal(name)) << name;
  }
  for (const char* name : {"__torch__.torch.nn.Linear", "torch.jit._pickle.build_intlist"}) {
    EXPECT_FALSE(IsKnownGlobal(name)) << name;
    EXPECT_TRUE(IsKnownGlobal(name, PickleUse::kTorchScript)) << name;
  }
}

TEST(Pickle, KnowsNamesThatRunCommands) {
  for (const char* name :
       {"os.system", "posix.system", "nt.popen", "sys.modules", "subprocess.Popen", "builtins.eval",
        "__builtin__.getattr", "shutil.rmtree", "socket.socket", "importlib.import_module",
        "runpy.run_path", "pickle.loads", "ctypes.CDLL", "webbrowser.open", "torch.load"}) {
    EXPECT_TRUE(IsDangerousGlobal(name)) << name;
  }
  for (const char* name : {"collections.OrderedDict", "builtins.set", "osmium.Net", "net.Model",
                           "torch.nn.modules.linear.Linear", "argparse.Namespace"}) {
    EXPECT_FALSE(IsDangerousGlobal(name)) << name;
  }
}

}  // namespace
}  // namespace fourpiles
