// The rules of the tree (tests/tidy/rules.h), first each on made-up text, then all on the tree.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tidy/rules.h"

namespace fourpiles::tidy {
namespace {

TEST(Includes, OfFoldersAboveAreFine) {
  const TextFile file = {"src/formats/a.cc",
                         "#include \"formats/a.h\"\n"
                         "#include <vector>\n"
                         "#include <fmt/format.h>\n"
                         "#include \"base/json.h\"\n"
                         "#include \"fourpiles/result.h\"\n"
                         "#include \"beside.h\"\n"};
  EXPECT_EQ(IncludeFaults(file), Faults());
}

TEST(Includes, OfAFolderBelowAreFaults) {
  EXPECT_EQ(IncludeFaults({"src/units/bytes.cc", "\n#include \"report/text.h\"\n"}),
            Faults({"src/units/bytes.cc:2: includes report/text.h, but report does not stand above "
                    "units in the one-way list"}));
}

TEST(Includes, OfASiblingAreFaults) {
  EXPECT_EQ(IncludeFaults({"src/kernels/round.cc", "#include \"tensors/gguf.h\"\n"}),
            Faults({"src/kernels/round.cc:1: includes tensors/gguf.h, but tensors does not stand "
                    "above kernels in the one-way list"}));
}

TEST(Includes, OfOurFoldersInAnglesAreSeenToo) {
  EXPECT_EQ(IncludeFaults({"include/fourpiles/a.h", "#  include <base/json.h>\n"}),
            Faults({"include/fourpiles/a.h:1: includes base/json.h, but base does not stand above "
                    "fourpiles in the one-way list"}));
}

TEST(Includes, OfUnknownFoldersAreFaults) {
  EXPECT_EQ(IncludeFaults({"src/base/a.cc", "#include \"../units/bytes.h\"\n"}),
            Faults({"src/base/a.cc:1: includes ../units/bytes.h, but .. is no folder of the "
                    "one-way list"}));
}

TEST(Includes, OfTestsMayBeAnything) {
  EXPECT_EQ(IncludeFaults({"tests/a_test.cc", "#include \"cli/command.h\"\n"}), Faults());
}

TEST(Includes, OfTheOwnHeaderComeFirst) {
  const std::vector<TextFile> tree = {
      {"src/base/json.h", ""},
      {"src/base/json.cc", "// Text.\n\n#include \"base/json.h\"\n\n#include <string>\n"},
      {"src/base/range.h", ""},
      {"src/base/range.cc", "#include <string>\n\n#include \"base/range.h\"\n"},
      {"src/base/alone.cc", "#include <string>\n"},
  };
  EXPECT_EQ(FirstIncludeFaults(tree),
            Faults({"src/base/range.cc: does not include src/base/range.h first"}));
}

TEST(Constants, HaveNamesOfTheirOwn) {
  const std::vector<TextFile> tree = {
      {"src/a/a.h", "inline constexpr int kA = 1;\ninline constexpr int kB = kA;\n"},
      {"src/b/b.h", "inline constexpr Format kA = {\n"},
      {"src/b/b.cc", "constexpr int kB = 2;\n"},
  };
  EXPECT_EQ(SharedConstantFaults(tree),
            Faults({"src/b/b.h:1: kA is defined in src/a/a.h too; give it a name of its own"}));
}

TEST(HeavyHeaders, StandOnlyWhereListed) {
  EXPECT_EQ(HeavyHeaderFaults({"cli/command_line.cc", "#include <CLI/CLI.hpp>\n"}), Faults());
  EXPECT_EQ(HeavyHeaderFaults({"cli/main.cc", "#include <CLI/CLI.hpp>\n"}),
            Faults({"cli/main.cc:1: includes CLI/CLI.hpp, a heavy header that is for "
                    "cli/command_line.cc"}));
}

TEST(HeavyHeaders, GoogleTestIsForTests) {
  EXPECT_EQ(HeavyHeaderFaults({"src/base/json_test.cc", "#include <gtest/gtest.h>\n"}), Faults());
  EXPECT_EQ(HeavyHeaderFaults({"src/base/json.h", "#include <gtest/gtest.h>\n"}),
            Faults({"src/base/json.h:1: includes gtest/gtest.h, a heavy header that is for "
                    "_test.cc src/base/testing.h src/tensors/test_cases.h"}));
}

TEST(Length, MayBe500Lines) {
  const std::string line = "int a;\n";
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += line;
  }
  EXPECT_EQ(LengthFaults({"src/base/a.cc", text}), Faults());
  EXPECT_EQ(LengthFaults({"src/base/a.cc", text + line}),
            Faults({"src/base/a.cc: 501 lines, at most 500; split it"}));
}

TEST(Names, OfNothingInParticularAreFaults) {
  EXPECT_EQ(NameFaults({"src/base/utilization.cc", ""}), Faults());
  EXPECT_EQ(NameFaults({"src/common/json_utils.cc", ""}),
            Faults({"src/common/json_utils.cc: named \"common\"; name what it is about",
                    "src/common/json_utils.cc: named \"utils\"; name what it is about"}));
}

TEST(Todo, NeedsAnIssue) {
  const std::string todo = std::string("// TO") + "DO";
  EXPECT_EQ(TodoFaults({"cli/main.cc", todo + "(#7): more\n"}), Faults());
  EXPECT_EQ(
      TodoFaults({"cli/main.cc", "\n" + todo + ": more\n"}),
      Faults({std::string("cli/main.cc:2: TO") + "DO without an issue; write TO" + "DO(#12)"}));
}

TEST(Globs, AreNotLookedThroughAtEachBuild) {
  EXPECT_EQ(GlobFaults({"cmake/a.cmake",
                        "set_property(DIRECTORY APPEND PROPERTY "
                        "CMAKE_CONFIGURE_DEPENDS data)\nfile(GLOB records a/*)\n"}),
            Faults());
  EXPECT_EQ(GlobFaults({"src/a/CMakeLists.txt", "file(GLOB records CONFIGURE_DEPENDS a/*)\n"}),
            Faults({"src/a/CMakeLists.txt:1: a glob at each build; name its folder in the "
                    "directory's CMAKE_CONFIGURE_DEPENDS"}));
}

TEST(Sources, AreNamedInTheNearestBuildFile) {
  const std::vector<TextFile> tree = {
      {"CMakeLists.txt", "add_subdirectory(src/base)\n"},
      {"src/base/CMakeLists.txt", "fourpiles_library(base SOURCES json.cc inner/deep.cc)\n"},
      {"src/base/json.cc", ""},
      {"src/base/inner/deep.cc", ""},
      {"src/base/son.cc", ""},
  };
  EXPECT_EQ(UnbuiltFaults(tree), Faults({"src/base/son.cc: not named in src/base/CMakeLists.txt"}));
}

TEST(Folders, NeedAReadme) {
  const std::vector<TextFile> tree = {
      {"run", ""},         {"src/base/json.cc", ""},   {"src/base/README.md", ""},
      {"cli/main.cc", ""}, {"src/units/bytes.cc", ""}, {"include/fourpiles/result.h", ""},
  };
  EXPECT_EQ(ReadmeFaults(tree),
            Faults({"cli: has no README.md", "include/fourpiles: has no README.md",
                    "src/units: has no README.md"}));
}

// --- The tree itself ---

const std::vector<TextFile>& Tree() {
  static const std::vector<TextFile> tree = ReadTree(FOURPILES_SOURCE_DIR);
  return tree;
}

// The faults of each file, one a line.
std::string FaultsOfTree(Faults (*rule)(const TextFile&)) {
  std::string lines;
  for (const TextFile& file : Tree()) {
    for (const std::string& fault : rule(file)) {
      lines += fault + "\n";
    }
  }
  return lines;
}

std::string FaultsOfTree(Faults (*rule)(std::span<const TextFile>)) {
  std::string lines;
  for (const std::string& fault : rule(Tree())) {
    lines += fault + "\n";
  }
  return lines;
}

TEST(Tree, IsRead) {
  EXPECT_GT(Tree().size(), 20U);
}
TEST(Tree, IncludesOneWay) {
  EXPECT_EQ(FaultsOfTree(IncludeFaults), "");
}
TEST(Tree, IncludesTheOwnHeaderFirst) {
  EXPECT_EQ(FaultsOfTree(FirstIncludeFaults), "");
}
TEST(Tree, HasNamesOfTheirOwnForConstants) {
  EXPECT_EQ(FaultsOfTree(SharedConstantFaults), "");
}
TEST(Tree, KeepsHeavyHeadersApart) {
  EXPECT_EQ(FaultsOfTree(HeavyHeaderFaults), "");
}
TEST(Tree, HasShortFiles) {
  EXPECT_EQ(FaultsOfTree(LengthFaults), "");
}
TEST(Tree, NamesFilesByMeaning) {
  EXPECT_EQ(FaultsOfTree(NameFaults), "");
}
TEST(Tree, HasAnIssueForEachTodo) {
  EXPECT_EQ(FaultsOfTree(TodoFaults), "");
}
TEST(Tree, IsNotGlobbedAtEachBuild) {
  EXPECT_EQ(FaultsOfTree(GlobFaults), "");
}
TEST(Tree, BuildsEverySource) {
  EXPECT_EQ(FaultsOfTree(UnbuiltFaults), "");
}
TEST(Tree, HasAReadmeInEachFolder) {
  EXPECT_EQ(FaultsOfTree(ReadmeFaults), "");
}

}  // namespace
}  // namespace fourpiles::tidy
