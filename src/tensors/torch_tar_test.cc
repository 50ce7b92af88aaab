// The tar form of PyTorch's checkpoints. What a good one holds stands in torch_test.cc, among the
// cases.

#include <string>
#include <utility>
#include <vector>

#include "base/testing.h"
#include "tensors/file_formats.h"
#include "tensors/tar.h"
#include "tensors/tar_testing.h"
#include "tensors/test_cases.h"

namespace fourpiles {
namespace {

FileReading Read(const std::string& bytes) {
  return ReadTensorFile(MemorySource("x.pt", std::as_bytes(std::span(bytes))));
}

// The members of the good case.
std::vector<MadeTarMember> GoodMembers() {
  const std::string bytes = *ReadWholeFile(CasePath("torch/tar_ok.pt"), 1 << 20);
  std::vector<MadeTarMember> members;
  const auto directory = *ReadTar(MemorySource("x", std::as_bytes(std::span(bytes))));
  for (const TarMember& member : directory.members) {
    members.push_back({.name = member.name,
                       .bytes = bytes.substr(static_cast<std::size_t>(member.offset),
                                             static_cast<std::size_t>(member.bytes))});
  }
  return members;
}

// The verdict and the first finding of the good case with other bytes in a member.
std::string ToldWith(std::string_view name, const std::string& bytes) {
  std::vector<MadeTarMember> members = GoodMembers();
  for (MadeTarMember& member : members) {
    if (member.name == name) {
      member.bytes = bytes;
    }
  }
  const FileReading reading = Read(MakeTar(members));
  return std::string(Name(WorstOf(reading.findings))) +
         (reading.findings.empty()
              ? ""
              : ": " + ErrorLine(Error{.text = reading.findings.front().text}));
}

std::string Zeros(std::size_t count) {
  return std::string(count, '\0');
}

// (1, 'cpu', torch.FloatStorage), then one element; and (2, 1, torch.FloatTensor), one dimension.
const std::string kOneStorage =
    "K\x01.(K\x01U\x03"
    "cpuctorch\nFloatStorage\nt.\x01" +
    Zeros(7) + "abcd";
const std::string kOneTensor =
    "K\x01.(K\x02K\x01"
    "ctorch\nFloatTensor\nt.\x01" +
    Zeros(7) + "\x01" + Zeros(7) + "\x01" + Zeros(7) + Zeros(8);

TEST(TorchTar, ReadsTheSmallestOne) {
  const FileReading reading = Read(MakeTar({{"storages", kOneStorage + "]."},
                                            {"tensors", kOneTensor},
                                            {"pickle", "}U\x01wU\x01\x32Qs."}}));
  EXPECT_EQ(reading.format, "torch-tar");
  EXPECT_TRUE(reading.findings.empty());
  ASSERT_EQ(reading.tensors.size(), 1U);
  EXPECT_EQ(reading.tensors[0].name, "w");
  EXPECT_EQ(reading.tensors[0].shape, std::vector<std::int64_t>{1});
  EXPECT_EQ(reading.tensors[0].offset, 512 + static_cast<std::int64_t>(kOneStorage.size()) - 4);
}

// A module as torch 0.1.9 saved one, its class beside its source; torch.load of 1.13.1 gives these
// parameters, one of them under two names.
TEST(TorchTar, ReadsWholeModules) {
  const std::string module =
      "\x80\x02(c__main__\nNet\nNNtQ)\x81}(U\x0b_parametersccollections\nOrderedDict\n)R("
      "U\x06weightctorch.nn."
      "parameter\nParameter\nU\x01\x32Q\x85Rq\x01U\x04tiedh\x01uU\x08trainingI01\nub.";
  const FileReading reading = Read(
      MakeTar({{"storages", kOneStorage + "]."}, {"tensors", kOneTensor}, {"pickle", module}}));
  ASSERT_EQ(reading.findings.size(), 1U);
  EXPECT_EQ(reading.findings[0].text.found, "loading it would import __main__.Net");
  ASSERT_EQ(reading.tensors.size(), 2U);
  EXPECT_EQ(reading.tensors[0].name, "_parameters.weight");
  EXPECT_EQ(reading.tensors[1].name, "_parameters.tied");
  EXPECT_EQ(reading.tensors[1].storage, reading.tensors[0].storage);
}

TEST(TorchTar, SaysWhatIsWrong) {
  const auto told = [](const std::string& storages, const std::string& tensors,
                       const std::string& pickle) {
    const FileReading reading =
        Read(MakeTar({{"storages", storages}, {"tensors", tensors}, {"pickle", pickle}}));
    return reading.findings.empty() ? "" : ErrorLine(Error{.text = reading.findings[0].text});
  };
  const std::string named = "}U\x01wU\x01\x32Qs.";
  const std::string cut = " | the file may have been cut short; fetch it again";
  EXPECT_EQ(
      told(kOneStorage, kOneTensor, named),
      "x.pt: byte 557 | the end | expected the step STOP before it in the member storages | ");
  EXPECT_EQ(told(kOneStorage.substr(0, kOneStorage.size() - 1), kOneTensor, named),
            "x.pt: byte 553 | a storage of 1 elements of \"torch.FloatStorage\" | its member ends "
            "after 3 bytes" +
                cut);
  EXPECT_EQ(told(kOneStorage + "].N", kOneTensor, named),
            "x.pt: byte 559 | 1 bytes behind the last of its storages | expected the end of the "
            "member | ");
  EXPECT_EQ(told("J\xff\xff\xff\xff.].", kOneTensor, named),
            "x.pt: byte 518 | an integer -1 in the member storages | expected how many, at most "
            "10000000 | ");
  EXPECT_EQ(told("K\x01.(K\x01"
                 "cos\nsystem\nctorch\nFloatStorage\nt.",
                 kOneTensor, named),
            "x.pt: storages | loading it would import os.system | a state dict needs none of these "
            "| such names run commands, read files or load other code when the "
            "file is loaded: do not load it; nothing of it was run here");
  EXPECT_EQ(told(kOneStorage + "](K\x03K\x01K\x01K\x01tq\x01"
                               "a.",
                 kOneTensor, named),
            "x.pt: storages | a part of a storage that does not lie within one | expected numbers, "
            "an offset and elements | ");
  EXPECT_EQ(told(kOneStorage + "].", kOneTensor, "}U\x01wU\x01\x33Qs."),
            "x.pt: persistent id | \"3\" | expected the number of a tensor or storage | ");
  EXPECT_EQ(told(kOneStorage + "].", kOneTensor, "}."),
            "x.pt: storages | 1 storages that no tensor looks at | expected none | ");
  std::string far = kOneTensor;
  far[far.size() - 8] = '\x01';
  EXPECT_EQ(
      told(kOneStorage + "].", far, named),
      "x.pt: tensor \"w\" | it reaches to byte 8 of its storage | the storage \"1\" has 4 | ");
}

TEST(TorchTar, RefusesOrReportsOddMembers) {
  EXPECT_EQ(ToldWith("", ""), "accept");
  EXPECT_EQ(ToldWith("sys_info", "}U\x10protocol_versionM\xe9\x03s."),
            "refuse: x.pt: sys_info | protocol_version of 1001 | expected protocol 1000 and "
            "little-endian numbers, which PyTorch reads | ");
  EXPECT_EQ(ToldWith("pickle", "cos\nsystem\n(U\x02idtR.").substr(0, 58),
            "report: x.pt: pickle | loading it would import os.system |");
  const auto verdict = [](MadeTarMember member) {
    std::vector<MadeTarMember> members = GoodMembers();
    members.push_back(std::move(member));
    return WorstOf(Read(MakeTar(members)).findings);
  };
  EXPECT_EQ(verdict({"storages", "K\x00."}), FileVerdict::kRefuse);
  EXPECT_EQ(verdict({"x", "", '2'}), FileVerdict::kRefuse);
  EXPECT_EQ(verdict({"/etc/x", "y"}), FileVerdict::kRefuse);
  EXPECT_EQ(verdict({"a/../../x", "y"}), FileVerdict::kRefuse);
  EXPECT_EQ(verdict({"notes", "y"}), FileVerdict::kReport);
  EXPECT_EQ(WorstOf(Read(MakeTar(GoodMembers()) + "y").findings), FileVerdict::kReport);
  EXPECT_EQ(
      ErrorLine(Error{.text = Read(MakeTar({{"./", "", '5'}, {"./a", "y"}})).findings[0].text}),
      "x.pt | a tar archive that is no checkpoint of PyTorch | expected the members storages, "
      "tensors and pickle | unpack it and give the files within");
}

// A file that is cut before the zeros at its end is refused; and whatever bit is turned, what is
// told lies within the file.
TEST(TorchTar, StandsEveryCutAndEveryTurnedBit) {
  std::string bytes = MakeTar(GoodMembers());
  for (std::size_t size = 512; size < bytes.size(); ++size) {
    const FileReading reading = Read(bytes.substr(0, size));
    const bool is_whole = size >= bytes.size() - 512;
    EXPECT_EQ(WorstOf(reading.findings), is_whole ? FileVerdict::kAccept : FileVerdict::kRefuse)
        << size;
    EXPECT_EQ(reading.tensors.size(), is_whole ? 6U : 0U);
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto mask = static_cast<char>(1U << bit % 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ mask);
    const FileReading reading = Read(bytes);
    for (const TensorStorage& storage : reading.storages) {
      EXPECT_LE(storage.offset + storage.bytes, static_cast<std::int64_t>(bytes.size())) << bit;
    }
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ mask);
  }
}

}  // namespace
}  // namespace fourpiles
