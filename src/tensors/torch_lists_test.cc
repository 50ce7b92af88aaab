// What is listed of a pickle is what PyTorch would load, or a finding says that it is not. Expected
// lists are those of torch.load (1.13.1) of the same bytes.

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tensors/file_formats.h"

namespace fourpiles {
namespace {

using namespace std::string_literals;

// Steps of protocol 2.
std::string Text(const std::string& text) {
  return "U"s + static_cast<char>(text.size()) + text;
}
std::string Global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
std::string Call(const std::string& callable, const std::string& arguments) {
  return callable + "(" + arguments + "tR";
}
std::string Dict(const std::string& items) {
  return "}(" + items + "u";
}

const std::string kOrderedDict = Global("collections", "OrderedDict");
const std::string kMaker = Global("torch._utils", "_rebuild_tensor_v2");
const std::string kParameter = Global("torch._utils", "_rebuild_parameter");
const std::string kTyped = Global("torch._tensor", "_rebuild_from_type_v2");
const std::string kStorage =
    "(" + Text("storage") + Global("torch", "FloatStorage") + Text("0") + Text("cpu") + "K\x06NtQ";

// Of the six elements of the one storage.
std::string Arguments(const std::string& shape, const std::string& strides) {
  return kStorage + "K\0"s + shape + strides + "\x89" + Call(kOrderedDict, "");
}
const std::string kMatrix = Call(kMaker, Arguments("K\x02K\x03\x86", "K\x03K\x01\x86"));
const std::string kVector = Call(kMaker, Arguments("K\x06\x85", "K\x01\x85"));

FileReading Read(const std::string& object, char elements = 6, std::size_t data_bytes = 24) {
  const std::string bytes = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.\x80\x02M\xe9\x03.}." +
                            object + ".](" + Text("0") + "e."s + elements +
                            std::string(7 + data_bytes, '\0');
  return ReadTensorFile(MemorySource("x.pt", std::as_bytes(std::span(bytes))));
}

// "report: made by torch.FloatTensor: a[2, 3] b[6]": the worst finding, then the tensors.
std::string Listed(const std::string& object) {
  const FileReading reading = Read(object);
  const FileVerdict worst = WorstOf(reading.findings);
  std::string text(Name(worst));
  for (const Finding& finding : reading.findings) {
    if (finding.verdict == worst && worst != FileVerdict::kAccept) {
      text += ": " + finding.text.found;
      break;
    }
  }
  for (const FileTensor& tensor : reading.tensors) {
    text += fmt::format(" {}[{}]", tensor.name, fmt::join(tensor.shape, ","));
  }
  return text;
}

TEST(TorchLists, TakesSharedContainersUnderEachName) {
  EXPECT_EQ(
      Listed(Dict(Text("model") + Dict(Text("w") + kMatrix) + "q\x07" + Text("ema") + "h\x07")),
      "accept model.w[2,3] ema.w[2,3]");
  // A dict within itself.
  EXPECT_EQ(Listed("}q\x07" + Text("w") + kMatrix + "s" + Text("self") + "h\x07s"),
            "accept w[2,3]");
}

TEST(TorchLists, TakesOrderedDictsOfDicts) {
  const std::string dict = Dict(Text("w") + kMatrix);
  EXPECT_EQ(Listed(Call(kOrderedDict, dict)), "accept w[2,3]");
  EXPECT_EQ(Listed(Call(kOrderedDict, Call(kOrderedDict, dict))), "accept w[2,3]");
  EXPECT_EQ(Listed(Call(kOrderedDict, "](" + Text("w") + kMatrix + "\x86" + "e")), "accept w[2,3]");
  EXPECT_EQ(Listed(Call(kOrderedDict, "](" + Text("w") + kMatrix + "N\x87" + "e")),
            "report: an OrderedDict of what is no dict and no list of pairs");
  // __new__() makes an empty one of any arguments.
  EXPECT_EQ(Listed(kOrderedDict + "(" + dict + "t\x81"),
            "refuse: a new collections.OrderedDict of arguments");
  // Attributes are no items.
  EXPECT_EQ(Listed(Call(kOrderedDict, "") + "(" + Text("w") + kMatrix + "u" +
                   Dict(Text("x") + kVector) + "b"),
            "report: an attribute of a dict w[2,3]");
}

TEST(TorchLists, TakesTheLastValueOfAKey) {
  const std::string twice = "accept-with-warning: a key that stands twice";
  EXPECT_EQ(Listed(Dict(Text("w") + kMatrix + Text("w") + kVector)), twice + " w[6]");
  EXPECT_EQ(Listed(Dict(Text("w") + kMatrix + Text("w") + "N")), twice);
  EXPECT_EQ(Listed(Dict("K\x01" + kMatrix + "\x88" + kVector)), twice + " 1[6]");  // 1 == True
}

TEST(TorchLists, RefusesListsThatChangeAfterACall) {
  const std::string lists = "]q\x01(K\x02K\x03"s + "e0]q\x02(K\x03K\x01" + "e0";
  const std::string tensor = Dict(Text("w") + Call(kMaker, Arguments("h\x01", "h\x02"))) + "q\x03";
  EXPECT_EQ(Listed(lists + tensor), "accept w[2,3]");
  const std::string refusal = "refuse: items for a list that a call has taken before";
  EXPECT_EQ(Listed(lists + tensor + "0h\x01K\x01" + "a0h\x03"), refusal);
  EXPECT_EQ(Listed("]q\x01" + Text("w") + kMatrix + "\x86" + "a0" + Call(kOrderedDict, "h\x01") +
                   "q\x02" + "0h\x01" + Text("x") + kVector + "\x86" + "a0h\x02"),
            refusal);
}

TEST(TorchLists, RefusesItemsAndStatesOfTensors) {
  const std::string item = "(K\0"s + kVector + "u";
  const std::string typed = Call(kTyped, kMaker + Global("torch", "Tensor") + "(" +
                                             Arguments("K\x02K\x03\x86", "K\x03K\x01\x86") + "t}");
  for (const std::string& tensor :
       {kMatrix, Call(Global("torch.nn.parameter", "Parameter"), kMatrix + "\x89"), typed}) {
    EXPECT_EQ(Listed(Dict(Text("w") + tensor)), "accept w[2,3]");
    EXPECT_EQ(Listed(Dict(Text("w") + tensor + item)), "refuse: items for a tensor");
    EXPECT_EQ(Listed(Dict(Text("w") + tensor + "(" + kStorage + "K\0K\x06\x85K\x01\x85tb"s)),
              "refuse: a state for a tensor");
  }
  EXPECT_EQ(Listed(Dict(Text("w") + Call(Global("torch._utils", "_rebuild_parameter_with_state"),
                                         kMatrix + "\x89" + Call(kOrderedDict, "") +
                                             Dict(Text("data") + kVector)))),
            "report: a state that replaces its data w[2,3]");
}

TEST(TorchLists, TellsOfTensorsThatAreMadeInOtherWays) {
  for (const std::string name : {"FloatTensor", "Tensor"}) {
    EXPECT_EQ(
        Listed(Dict(Text("w") + Call(Global("torch", name), "K\x02K\x03") + Text("v") + kVector)),
        "report: made by torch." + name + " v[6]");
  }
  std::string wrapped = kMatrix;
  for (int i = 0; i < 12; ++i) {
    wrapped = Call(kParameter, wrapped + "\x89" + Call(kOrderedDict, ""));
  }
  EXPECT_EQ(Listed(Dict(Text("w") + wrapped)), "accept w[2,3]");
  EXPECT_EQ(Listed(Dict(Text("w") + Call(kTyped, kParameter + Global("torch", "Tensor") + "(" +
                                                     kMatrix + "\x89Nt}"))),
            "accept w[2,3]");
  const FileReading meta =
      Read(Dict(Text("w") +
                Call(Global("torch._utils", "_rebuild_meta_tensor_no_storage"),
                     Global("torch", "float16") + "K\x02K\x03\x86K\x03K\x01\x86\x89") +
                Text("v") + kVector));
  ASSERT_EQ(meta.tensors.size(), 2U);
  EXPECT_EQ(meta.tensors[0].dtype, "F16");
  EXPECT_EQ(meta.tensors[0].elements, 6);
  EXPECT_EQ(meta.tensors[0].bytes, 0);
}

// A step UNICODE has \u alone, a step STRING the escapes of Python 2.
TEST(TorchLists, ReadsEscapesOfTextsAsPython) {
  EXPECT_EQ(Listed(Dict("Va\\u0077\\x41\\\\u0041\n" + kVector)), "accept aw\\x41\\\\u0041[6]");
  EXPECT_EQ(Listed(Dict("S'a\\x41\\'\\101\\q\\xc3\\xa9\\u0041'\n" + kVector)),
            "accept aA'A\\qé\\u0041[6]");
}

// torch.quantize_per_channel(…, torch.quint4x2) of 3 × 5: a storage of 9 elements, rows of 3 bytes.
TEST(TorchLists, CountsRowsOfHalfBytesInWholeOnes) {
  std::string storage = kStorage;
  storage.replace(storage.find("FloatStorage"), 12, "QUInt4x2Storage");
  storage.replace(storage.find("K\x06"), 2, "K\x09");
  const FileReading reading = Read(
      Call(Global("torch._utils", "_rebuild_qtensor"),
           storage + "K\0K\x03K\x05\x86K\x05K\x01\x86("s + Global("torch", "per_tensor_affine") +
               "G\x3f\xe0\0\0\0\0\0\0K\0t\x89"s + Call(kOrderedDict, "")),
      9, 9);
  EXPECT_EQ(WorstOf(reading.findings), FileVerdict::kAccept);
  ASSERT_EQ(reading.tensors.size(), 1U);
  EXPECT_EQ(reading.tensors[0].bytes, 9);
  EXPECT_EQ(reading.tensors[0].elements, 15);
  ASSERT_NE(reading.tensors[0].type, nullptr);
  EXPECT_EQ(reading.tensors[0].type->name, "uint4");
}

// str() of Python; keys of one value are one.
TEST(TorchLists, NamesKeysThatAreNoTexts) {
  const std::string real = "G\x40\x04\0\0\0\0\0\0"s;  // 2.5
  EXPECT_EQ(Listed(Dict("\x88" + kVector + real + kVector + "N" + kVector + "K\x01" + Text("a") +
                        "\x86" + kVector + "K\x02\x85" + kVector)),
            "accept True[6] 2.5[6] None[6] (1, 'a')[6] (2,)[6]");
  EXPECT_EQ(Listed(Dict("K\x01" + kMatrix + "G\x3f\xf0\0\0\0\0\0\0"s + kVector)),
            "accept-with-warning: a key that stands twice 1[6]");
}

// 20,000 dicts of one shared list of a thousand pairs are 20 million values of 160 KB.
TEST(TorchLists, RefusesContainersThatAreSharedTooOften) {
  std::string pickle = "(](";
  for (int i = 0; i < 1000; ++i) {
    pickle += "U\x01" + std::string(1, static_cast<char>('a' + i % 20)) + "N\x86";
  }
  pickle += "eq\x01";
  for (int i = 0; i < 20'000; ++i) {
    pickle += (i == 0 ? kOrderedDict + "q\x02" : "h\x02") + "h\x01\x85R"s;
  }
  EXPECT_EQ(Listed(pickle + "l").substr(0, 36), "refuse: shared containers of more th");
}

}  // namespace
}  // namespace fourpiles
