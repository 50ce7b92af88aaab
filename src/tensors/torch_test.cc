#include "tensors/torch.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/testing.h"
#include "tensors/file_formats.h"
#include "tensors/piles.h"
#include "tensors/test_cases.h"

namespace fourpiles {
namespace {

std::vector<std::int64_t> NumbersOf(const Json& array) {
  std::vector<std::int64_t> numbers;
  for (const Json& number : *array.AsArray()) {
    numbers.push_back(*number.AsInteger());
  }
  return numbers;
}

std::vector<std::string> TextsOf(const Json& array) {
  std::vector<std::string> texts;
  for (const Json& text : *array.AsArray()) {
    texts.push_back(*text.AsString());
  }
  return texts;
}

// The strides of a tensor, those of row-major ones too.
std::vector<std::int64_t> StridesOf(const FileTensor& tensor) {
  if (!tensor.strides.empty()) {
    return tensor.strides;
  }
  std::vector<std::int64_t> strides(tensor.shape.size(), 1);
  for (std::size_t i = strides.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(tensor.shape[i], 1);
  }
  return strides;
}

// Name, dtype, shape, strides, bytes, place in the storage, and which tensors share one. `key` is
// the field that names the storage.
void ExpectTorchList(const Json& list, const FileReading& reading, std::string_view key) {
  ASSERT_EQ(list.AsArray()->size(), reading.tensors.size());
  std::map<std::string, std::set<std::int32_t>> storages;
  for (std::size_t i = 0; i < reading.tensors.size(); ++i) {
    const Json& expected = (*list.AsArray())[i];
    const FileTensor& tensor = reading.tensors[i];
    EXPECT_EQ(tensor.name, TextOf(expected, "name"));
    EXPECT_EQ(tensor.dtype, TextOf(expected, "dtype")) << tensor.name;
    EXPECT_EQ(tensor.bytes, *expected.Find("bytes")->AsInteger()) << tensor.name;
    EXPECT_EQ(tensor.shape, NumbersOf(*expected.Find("shape"))) << tensor.name;
    if (tensor.elements > 1) {  // of fewer, strides say nothing
      EXPECT_EQ(StridesOf(tensor), NumbersOf(*expected.Find("stride"))) << tensor.name;
    }
    ASSERT_GE(tensor.storage, 0);
    const TensorStorage& storage = reading.storages[static_cast<std::size_t>(tensor.storage)];
    const std::int64_t element_bytes = tensor.elements > 0 ? tensor.bytes / tensor.elements : 0;
    EXPECT_EQ(tensor.offset - (storage.packed ? 0 : storage.offset),
              *expected.Find("storage_offset")->AsInteger() * element_bytes)
        << tensor.name;
    if (const Json* contiguous = expected.Find("contiguous")) {
      EXPECT_EQ(tensor.strides.empty(), *contiguous->AsBool()) << tensor.name;
    }
    if (const Json* bytes = expected.Find("storage_bytes")) {
      EXPECT_EQ(storage.bytes, *bytes->AsInteger()) << tensor.name;
    }
    const Json& group = *expected.Find(key);
    storages[group.AsString() ? *group.AsString() : std::to_string(*group.AsInteger())].insert(
        tensor.storage);
  }
  std::set<std::int32_t> all;
  for (const auto& [name, numbers] : storages) {
    EXPECT_EQ(numbers.size(), 1U) << "storage " << name;
    all.insert(numbers.begin(), numbers.end());
  }
  EXPECT_EQ(all.size(), storages.size());
}

const Json* FactOf(const FileReading& reading, std::string_view key) {
  const auto found = std::find_if(reading.facts.begin(), reading.facts.end(),
                                  [&](const Json::Member& fact) { return fact.first == key; });
  return found == reading.facts.end() ? nullptr : &found->second;
}

// Moments under "PREFIX.state.N." are of the N-th name.
void ExpectMoments(const FileReading& reading, const std::vector<std::string>& order) {
  const std::vector<PiledTensor> piles = TensorPilesOf(reading.tensors);
  std::size_t moments = 0;
  for (std::size_t i = 0; i < piles.size(); ++i) {
    const std::string& name = reading.tensors[i].name;
    if (const std::size_t state = name.find(".state."); state != std::string::npos) {
      const std::string& expected = order.at(std::stoul(name.substr(state + 7)));
      ASSERT_GE(piles[i].weight, 0) << name;
      EXPECT_EQ(reading.tensors[static_cast<std::size_t>(piles[i].weight)].name, expected) << name;
      ++moments;
    }
  }
  EXPECT_EQ(moments, 3 * order.size());  // step, exp_avg, exp_avg_sq
}

// How many tensors, parameters and bytes each pile has.
void ExpectPiles(const Json& expected, const FileReading& reading) {
  const std::vector<PiledTensor> piles = TensorPilesOf(reading.tensors);
  std::map<std::string_view, std::array<std::int64_t, 3>> sums;
  for (std::size_t i = 0; i < piles.size(); ++i) {
    auto& [tensors, parameters, bytes] = sums[Name(piles[i].pile)];
    ++tensors;
    parameters += reading.tensors[i].elements;
    bytes += reading.tensors[i].bytes;
  }
  EXPECT_EQ(sums.size(), expected.AsObject()->size());
  for (const auto& [name, sum] : *expected.AsObject()) {
    EXPECT_EQ(sums[name][0], *sum.Find("tensors")->AsInteger()) << name;
    EXPECT_EQ(sums[name][1], *sum.Find("parameters")->AsInteger()) << name;
    EXPECT_EQ(sums[name][2], *sum.Find("bytes")->AsInteger()) << name;
  }
}

// Outcome, sums, what would be imported, and the list where the row has one.
void ExpectTorchRow(const Json& row, const FileReading& reading) {
  std::string findings;
  for (const Finding& finding : reading.findings) {
    findings += finding.text.where + ": " + finding.text.found + "\n";
  }
  EXPECT_EQ(Name(WorstOf(reading.findings)), TextOf(row, "outcome")) << findings;
  if (row.Find("tensors") == nullptr) {
    return;
  }
  ExpectFacts(row, reading.tensors);
  for (const char* key : {"storages", "storage_bytes"}) {
    if (const Json* expected = row.Find(key)) {
      ASSERT_NE(FactOf(reading, key), nullptr);
      EXPECT_EQ(*FactOf(reading, key)->AsInteger(), *expected->AsInteger()) << key;
    }
  }
  if (const Json* expected = row.Find("unsafe_globals")) {
    // Those of TorchScript are looked up in the archive.
    std::vector<std::string> names = TextsOf(*expected);
    std::erase_if(names, [](const std::string& name) { return name.starts_with("__torch__."); });
    const Json* fact = FactOf(reading, "unsafe_globals");
    const std::vector<std::string> found = fact ? TextsOf(*fact) : std::vector<std::string>();
    EXPECT_EQ(std::set(found.begin(), found.end()), std::set(names.begin(), names.end()));
  }
  if (const Json* list = row.Find("list")) {
    ExpectTorchList(*list, reading, "storage");
  }
  if (const Json* order = row.Find("param_order")) {
    ExpectMoments(reading, TextsOf(*order));
  }
  if (const Json* piles = row.Find("piles")) {
    ExpectPiles(*piles, reading);
  }
}

FileReading ReadFile(const std::string& path) {
  const auto source = FileSource::Open(path);
  return source ? ReadTensorFile(*source) : FileReading();
}

std::string TorchCase(std::string_view name) {
  return CasePath("torch/") + std::string(name);
}

TEST(Torch, GivesEveryCaseItsOutcomeAndFacts) {
  for (const Json& row : ReadCases("torch.jsonl")) {
    SCOPED_TRACE(TextOf(row, "file"));
    ExpectTorchRow(row, ReadFile(TorchCase(TextOf(row, "file"))));
  }
}

std::string FirstFinding(const std::string& bytes, const char* name = "x.pt") {
  const FileReading reading = ReadTensorFile(MemorySource(name, std::as_bytes(std::span(bytes))));
  return std::string(Name(WorstOf(reading.findings))) +
         (reading.findings.empty()
              ? ""
              : ": " + ErrorLine(Error{.text = reading.findings.front().text}));
}

std::string FirstFindingOfCase(const char* name) {
  return FirstFinding(*ReadWholeFile(TorchCase(name), 1'000'000));
}

TEST(Torch, SaysWhatIsWrong) {
  EXPECT_EQ(FirstFindingOfCase("bad_tensor_past_storage.pt"),
            "refuse: x.pt: tensor \"w\" | it reaches to byte 64 of its storage | the storage \"0\" "
            "has 16 | ");
  EXPECT_EQ(FirstFindingOfCase("bad_storage_key_traversal.pt"),
            "refuse: x.pt: storage \"../../../etc/passwd\" | nowhere in the file | the pickle says "
            "16 bytes | ");
  EXPECT_EQ(FirstFindingOfCase("bad_size_stride_rank.pt"),
            "refuse: x.pt: tensor \"w\" | 2 dimensions and 1 strides | expected as many | ");
  EXPECT_EQ(
      FirstFindingOfCase("bad_negative_stride.pt"),
      "refuse: x.pt: tensor \"w\" | a negative dimension, stride or offset | expected numbers "
      "from 0 on | ");
  EXPECT_EQ(FirstFindingOfCase("bad_os_system_global.pt"),
            "report: x.pt: m/data.pkl | loading it would import posix.system | a state dict needs "
            "none of these | such names run commands, read files or load other code when the "
            "file is loaded: do not load it; nothing of it was run here");
  EXPECT_EQ(FirstFindingOfCase("bad_legacy_protocol.bin").substr(0, 24),
            "refuse: x.pt: protocol |");
  EXPECT_EQ(FirstFinding("\x80\x02}."), "accept");
  EXPECT_EQ(FirstFinding("\x80\x02}.\x80\x02}."), "accept");  // two pickles
  EXPECT_EQ(
      FirstFinding("\x80\x02}.\xff\xff"),
      "report: x.pt: byte 4 | the step 0xff | expected one of protocol 0 to 5 | a pickle ended "
      "before; a program may read on behind it");
  EXPECT_EQ(
      FirstFinding("ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}b.", ".metadata"),
      "refuse: .metadata | the metadata of a distributed checkpoint, whose tensors lie beside "
      "it | expected a file of tensors | call it .metadata, or give the folder in which it "
      "has that name");
  EXPECT_EQ(FirstFinding("cos\nsystem\n(S'id'\ntR.", "x.pkl").substr(0, 60),
            "report: x.pkl: pickle from byte 0 | loading it would import ");
}

// What stands behind more pickles than are read is told, whatever it is.
TEST(Torch, TellsOfPicklesThatAreNotRead) {
  std::string bytes = "\x80\x02N.";
  for (int i = 1; i < 1000; ++i) {
    bytes += "N.";
  }
  EXPECT_EQ(FirstFinding(bytes, "x.pkl"), "accept");
  EXPECT_EQ(FirstFinding(bytes + "cos\nsystem\n.", "x.pkl"),
            "report: x.pkl: byte 2002 | more than 1000 pickles | expected fewer | what follows was "
            "not read");
}

constexpr std::string_view kStreamMagic =
    "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.\x80\x02M\xe9\x03.}.";

// A tensor of one float32 in storage "0", as _rebuild_tensor_v2 of protocol 2 makes it.
std::string TensorSteps(const std::string& key) {
  using namespace std::string_literals;
  return "ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nX"s +
         static_cast<char>(key.size() % 256) + static_cast<char>(key.size() / 256) + "\x00\x00"s +
         key + "U\x03" + "cpuK\x01tQK\x00K\x01\x85K\x01\x85tR"s;
}

// More elements than the object says would be bytes that nobody looks at.
TEST(Torch, RefusesStoragesOfOtherLengthsInTheStreamForm) {
  using namespace std::string_literals;
  const std::string start = std::string(kStreamMagic) + TensorSteps("0") + ".(U\x01\x30l."s;
  EXPECT_EQ(FirstFinding(start + "\x01\0\0\0\0\0\0\0abcd"s), "accept");
  const std::string place = std::to_string(start.size());
  EXPECT_EQ(
      FirstFinding(start + "\x02\0\0\0\0\0\0\0abcdabcd"s),
      "refuse: x.pt: byte " + place + " | 2 elements of the storage \"0\" | the object says 1 | ");
}

TEST(Torch, RefusesLongKeysOfStorages) {
  using namespace std::string_literals;
  const std::string start = std::string(kStreamMagic) + TensorSteps(std::string(1001, 'k'));
  EXPECT_EQ(
      FirstFinding(start + ".]."s),
      "refuse: x.pt: persistent id | a tuple | expected a storage, whose key has at most 1000 "
      "bytes | ");
}

// A shared tensor in a list, under a key of 60,000 bytes: each time another name as long.
TEST(Torch, RefusesNamesThatGrow) {
  using namespace std::string_literals;
  std::string pickle =
      "}X\x60\xea\x00\x00"s + std::string(60'000, 'n') + "(" + TensorSteps("0") + "q\x05";
  for (int i = 0; i < 300; ++i) {
    pickle += "h\x05";
  }
  EXPECT_EQ(
      FirstFinding(std::string(kStreamMagic) + pickle + "ls.(U\x01\x30l.\x01\0\0\0\0\0\0\0abcd"s)
          .substr(0, 54),
      "refuse: x.pt: tensors | names and shapes of more than ");
}

// The parts of a sparse tensor are few, and a hostile pickle names one a million times.
TEST(Torch, RefusesSparseTensorsOfManyParts) {
  using namespace std::string_literals;
  std::string parts;
  for (int i = 0; i < 9; ++i) {
    parts += "h\x05";
  }
  const auto sparse = [&](const std::string& of) {
    return FirstFinding(std::string(kStreamMagic) + TensorSteps("0") +
                        "q\x05"
                        "0ctorch._utils\n_rebuild_sparse_tensor\n(N("s +
                        of + "ttR.(U\x01\x30l.\x01\0\0\0\0\0\0\0abcd"s);
  };
  EXPECT_EQ(sparse(parts.substr(0, 4)), "accept");
  EXPECT_EQ(sparse(parts), "refuse: x.pt: sparse tensor | 9 parts | expected at most 8 | ");
}

// What is appended to an object has no keys, where a dict has.
TEST(Torch, ReadsObjectsInPlaceOfDicts) {
  const std::string magic = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.\x80\x02M\xe9\x03.";
  for (const char* steps : {"cnet\nList\n)RK\x01"
                            "a.}.].",
                            "}.ccollections\nOrderedDict\n(cnet\nList\n)RK\x01"
                            "atR.]."}) {
    const std::string found = FirstFinding(magic + steps);
    EXPECT_NE(found.find("loading it would import net.List"), std::string::npos) << found;
  }
}

// torch.save(module) kept the source of each class beside it: ('module', class, file, source).
TEST(Torch, ReadsWholeModulesOfTheStreamForm) {
  const std::string bytes =
      "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.\x80\x02M\xe9\x03.}.(U\x06modulecnet\n"
      "Net\nU\x06net.pyU\x06sourcetQ)\x81}U\x08_buffers}sb.].";
  EXPECT_EQ(FirstFinding(bytes).substr(0, 51),
            "report: x.pt: object | loading it would import net.");
  EXPECT_EQ(FirstFinding(bytes).find("persistent"), std::string::npos);
}

// One tensor as 2^60 leaves of tuples: no more are listed than the pickle is long.
TEST(Torch, RefusesATensorOfABomb) {
  using namespace std::string_literals;
  std::string pickle =
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\x01\x30U\x03"
      "cpuK\x01tQK\x00K\x01\x85K\x01\x85tRq\x00"s;
  for (char i = 0; i < 60; ++i) {
    pickle += "(h"s + i + "h" + i + "tq" + static_cast<char>(i + 1);
  }
  const std::string magic = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.\x80\x02M\xe9\x03.}.";
  const std::string bytes =
      magic + pickle + ".(U\x01\x30l.\x01\x00\x00\x00\x00\x00\x00\x00"s + "abcd";
  const FileReading reading = ReadTensorFile(MemorySource("x", std::as_bytes(std::span(bytes))));
  EXPECT_EQ(FirstFinding(bytes).substr(0, 54),
            "refuse: x.pt: tensors | names and shapes of more than ");
  EXPECT_TRUE(reading.tensors.empty());
}

// A folder given by a variable of the environment; empty: there is none.
std::string FolderOf(const char* variable) {
  const char* folder = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): before any thread
  return folder == nullptr ? "" : folder;
}

std::vector<Json> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<Json> rows;
  for (std::string line; std::getline(file, line);) {
    rows.push_back(*ReadJson(line, path));
  }
  return rows;
}

// Real files of others, which are not ours to copy: a folder with a list cases.jsonl.
TEST(Torch, GivesRealFilesTheirOutcomeAndFacts) {
  const std::string folder = FolderOf("FOURPILES_CASES");
  if (folder.empty()) {
    GTEST_SKIP() << "FOURPILES_CASES names no folder of cases";
  }
  int count = 0;
  for (const Json& row : LinesOf(folder + "/cases.jsonl")) {
    const std::string family = TextOf(row, "family");
    const std::string file = TextOf(row, "local");
    const Json& expected = *row.Find("expected");
    const bool is_ours = (family == "torch" || family == "pickle") && !file.ends_with(".npy") &&
                         !file.ends_with(".npz");
    if (!is_ours) {
      continue;
    }
    SCOPED_TRACE(file);
    ++count;
    const FileReading reading = ReadFile((std::filesystem::path(folder) / file).string());
    ExpectTorchRow(expected, reading);
    if (const Json* list = expected.Find("full_list")) {
      const auto text = ReadWholeFile(folder + "/" + *list->AsString(), 10'000'000);
      ASSERT_TRUE(text.has_value());
      ExpectTorchList(*ReadJson(*text, "list", {.bytes = 10'000'000}), reading, "storage");
    }
  }
  EXPECT_GT(count, 100);
}

// Checkpoints of a real training run, with what PyTorch says of each tensor: a folder of NAME.pt
// and NAME.pt.json.
TEST(Torch, ReadsTheCheckpointsOfARun) {
  const std::string folder = FolderOf("FOURPILES_CHECKPOINTS");
  if (folder.empty()) {
    GTEST_SKIP() << "FOURPILES_CHECKPOINTS names no folder of checkpoints";
  }
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    const std::string json = path + ".json";
    if (!path.ends_with(".pt") || path.ends_with("whole_module_pickle.pt") ||
        !std::filesystem::exists(json)) {
      continue;
    }
    SCOPED_TRACE(path);
    const auto text = ReadWholeFile(json, 10'000'000);
    ASSERT_TRUE(text.has_value());
    const auto facts = ReadJson(*text, json, {.bytes = 10'000'000, .non_finite = true});
    ASSERT_TRUE(facts.has_value());
    if (facts->Find("tensors") == nullptr) {
      continue;
    }
    ++count;
    const FileReading reading = ReadFile(path);
    EXPECT_TRUE(reading.findings.empty());
    for (const auto& [fact, field] :
         {std::pair("storages", "n_unique_storages"), {"storage_bytes", "unique_storage_bytes"}}) {
      EXPECT_EQ(*FactOf(reading, fact)->AsInteger(), *facts->Find(field)->AsInteger());
    }
    ExpectTorchList(*facts->Find("tensors"), reading, "storage_group");
  }
  EXPECT_GT(count, 5);
}

// After 800 steps of a real run: the parameters of the optimizer in the order in which it got them.
TEST(Torch, JoinsTheMomentsOfARunToItsWeights) {
  const std::string folder = FolderOf("FOURPILES_CHECKPOINTS");
  if (folder.empty()) {
    GTEST_SKIP() << "FOURPILES_CHECKPOINTS names no folder of checkpoints";
  }
  const std::string path = folder + "/dyn_fp32_step800.pt";
  const auto text = ReadWholeFile(path + ".json", 10'000'000);
  ASSERT_TRUE(text.has_value());
  const auto facts = ReadJson(*text, path, {.bytes = 10'000'000, .non_finite = true});
  ASSERT_TRUE(facts.has_value());
  std::vector<std::string> order = TextsOf(*facts->Find("param_order"));
  for (std::string& name : order) {
    name.insert(0, "model.");
  }
  ExpectMoments(ReadFile(path), order);
}

// A file that is cut is refused, wherever the cut; and whatever bit is turned, tensors that are
// told lie within their storages, and those within the file.
TEST(Torch, StandsEveryCutAndEveryTurnedBit) {
  for (const char* name : {"ok.pt", "legacy_ok.bin", "deflated.pt"}) {
    const std::string whole = *ReadWholeFile(TorchCase(name), 1'000'000);
    const auto read = [](const std::string& bytes) {
      return ReadTensorFile(MemorySource("x.pt", std::as_bytes(std::span(bytes))));
    };
    for (std::size_t length = 0; length < whole.size(); ++length) {
      EXPECT_EQ(WorstOf(read(whole.substr(0, length)).findings), FileVerdict::kRefuse) << length;
    }
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string turned = whole;
      turned[bit / 8] = static_cast<char>(turned[bit / 8] ^ (1 << bit % 8));
      const FileReading reading = read(turned);
      for (const TensorStorage& storage : reading.storages) {
        EXPECT_TRUE(storage.packed || reading.tensors.empty() ||
                    storage.offset + storage.bytes <= static_cast<std::int64_t>(turned.size()))
            << bit;
      }
    }
  }
}

}  // namespace
}  // namespace fourpiles
