#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "model/catalogue.h"
#include "model/test_configs.h"

namespace fourpiles {
namespace {

class OpenModelTest : public testing::Test {
 protected:
  OpenModelTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("fourpiles-open-model-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~OpenModelTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) const { std::ofstream(Config()) << text; }
  std::string Folder() const { return folder_.string(); }
  std::string Config() const { return (folder_ / "config.json").string(); }

 private:
  std::filesystem::path folder_;
};

TEST_F(OpenModelTest, ReadsTheConfigOfAFolder) {
  Write(Llama());
  for (const std::string& path : {Folder(), Config()}) {
    const Result<Model> model = OpenModel(path);
    ASSERT_TRUE(model) << Message(model.error());
    EXPECT_EQ(model->name, path);
    EXPECT_EQ(model->source, Config());
    EXPECT_EQ(model->network.vocab_size, 100);
  }
}

TEST_F(OpenModelTest, ReadsARecordOfTheCataloguesForm) {
  Write(Llama("id", "\"my-llama\""));
  const Result<Model> model = OpenModel(Config());
  ASSERT_TRUE(model) << Message(model.error());
  EXPECT_EQ(model->name, "my-llama");
}

TEST_F(OpenModelTest, RefusesAFolderWithoutAConfig) {
  const Result<Model> model = OpenModel(Folder());
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::kInput);
  EXPECT_EQ(Message(model.error()),
            "error: " + Folder() +
                ": no config.json in this folder, expected the folder of a Hugging Face model\n"
                "hint: name the folder that holds the model's files");
}

TEST_F(OpenModelTest, RefusesAFileThatIsNotThere) {
  const Result<Model> model = OpenModel(Config());
  ASSERT_FALSE(model);
  EXPECT_EQ(Message(model.error()),
            "error: " + Config() + ": no such file\nhint: check the spelling of the path");
}

TEST_F(OpenModelTest, RefusesAFileThatItMayNotRead) {
  Write(Llama());
  std::filesystem::permissions(Config(), std::filesystem::perms::none);
  const bool is_root = ::geteuid() == 0;
  constexpr uid_t kNobody = 65534;  // root may read anything
  if (is_root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const Result<Model> model = OpenModel(Config());
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_FALSE(model);
  EXPECT_EQ(Message(model.error()),
            "error: " + Config() + ": Permission denied, expected a file to read");
}

TEST_F(OpenModelTest, RefusesAFileThatIsTooLarge) {
  Write(Llama());
  std::filesystem::resize_file(Config(), (4 << 20) + 1);
  const Result<Model> model = OpenModel(Config());
  ASSERT_FALSE(model);
  EXPECT_EQ(Message(model.error()),
            "error: " + Config() + ": 4194305 bytes, expected at most 4194304");
}

TEST_F(OpenModelTest, RefusesWhatIsNoFile) {
  const Result<Model> model = OpenModel("/dev/zero");
  ASSERT_FALSE(model);
  EXPECT_EQ(Message(model.error()),
            "error: /dev/zero: a pipe or device, expected a regular file\n"
            "hint: copy its content to a file");
}

}  // namespace
}  // namespace fourpiles
