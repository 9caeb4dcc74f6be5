// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/ctl/commands.h"
#include "core/ctl/dump_state.h"
#include "core/ctl/redact.h"
#include "core/ctl/run_tool.h"
#include "core/os/fs.h"
#include "core/store/record.h"
#include "core/trace/recorder.h"

namespace gantry::ctl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kTar[] = "/usr/bin/tar";
constexpr auto kTarLimit = std::chrono::seconds(60);
constexpr size_t kMostOfTar = size_t{64} << 20;

/// A node on which gantry has run and nothing answers.
class DumpTest : public testing::Test {
 protected:
  DumpTest() {
    arguments_.address = dir_.path() + "/gantry.sock";
    arguments_.config = dir_.path() + "/gantry.yaml";
    Write("gantry.yaml", "handlers:\n  runc:\n    backend: runc\n    options: {Token: hush}\n");
    Write("gantry.log", "level=info msg=\"token=hush\"\nlevel=info msg=\"up\"\n");
    trace::Recorder recorder;
    EXPECT_TRUE(recorder.Open(dir_.path()));
    recorder.Begin(trace::Kind::kCall, {"default", "c1", ""}, "Create")
        .Ended(Code::kInternal, "password=hush");
  }

  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteFile(dir_.path() + "/" + name, text, 0600));
  }

  static const DumpFile& Of(const std::vector<DumpFile>& files, const std::string& name) {
    const auto found = std::ranges::find(files, name, &DumpFile::name);
    EXPECT_NE(found, files.end()) << name;
    static const DumpFile none;
    return found == files.end() ? none : *found;
  }

  const os::TempDir dir_ = std::move(*os::TempDir::Create());
  Arguments arguments_;
};

TEST_F(DumpTest, HasWhatFilesSayWhereNothingAnswers) {
  const std::vector<DumpFile> files = CollectDump(arguments_);
  EXPECT_THAT(Of(files, "gantry.yaml").text, HasSubstr("backend: runc"));
  EXPECT_THAT(Of(files, "logs/gantry.log").text, HasSubstr("up"));
  EXPECT_THAT(Of(files, "trace.txt").text, HasSubstr("c1"));
  EXPECT_THAT(Of(files, "trace.json").text, HasSubstr("\"id\": \"c1\""));
  EXPECT_THAT(Of(files, "keeper.txt").text, HasSubstr("not to be had: reach the keeper"));
  EXPECT_THAT(Of(files, "status.txt").text, HasSubstr("not to be had: reach gantry"));
  EXPECT_THAT(Of(files, "doctor.txt").text, HasSubstr("Linux 5.3 or later"));
  EXPECT_THAT(Of(files, "versions.txt").text, HasSubstr("gantryctl "));
  EXPECT_THAT(Of(files, "node.txt").text, HasSubstr("Linux"));
}

TEST_F(DumpTest, LeavesSecretsOut) {
  for (const DumpFile& file : CollectDump(arguments_)) {
    EXPECT_THAT(file.text, Not(HasSubstr("hush"))) << file.name;
  }
}

TEST_F(DumpTest, SaysWhatIsWrongWithTheConfigurationAndGoesOn) {
  Write("gantry.yaml", "limits: [\n");
  const std::vector<DumpFile> files = CollectDump(arguments_);
  EXPECT_THAT(Of(files, "gantry.yaml").text, HasSubstr("not to be had"));
  EXPECT_THAT(Of(files, "configuration-error.txt").text, HasSubstr("gantry.yaml"));
  EXPECT_THAT(Of(files, "trace.txt").text, HasSubstr("c1"));
}

TEST_F(DumpTest, IsOneArchiveForItsOwnerAlone) {
  const std::string archive = dir_.path() + "/dump.tar.gz";
  ASSERT_TRUE(
      PackDump({{"a.txt", "the first", "one"}, {"logs/b.log", "the second", "two"}}, archive));

  struct stat info{};
  ASSERT_EQ(stat(archive.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const auto names = OutputOf({kTar, "-tzf", archive}, kTarLimit, kMostOfTar);
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_THAT(*names,
              AllOf(HasSubstr("gantry-debug/a.txt\n"), HasSubstr("gantry-debug/logs/b.log\n")));
  const auto readme =
      OutputOf({kTar, "-xzOf", archive, "gantry-debug/README.txt"}, kTarLimit, kMostOfTar);
  ASSERT_TRUE(readme) << readme.error().message;
  EXPECT_THAT(*readme, AllOf(HasSubstr("a.txt"), HasSubstr("the second"), HasSubstr("Left out")));
}

TEST_F(DumpTest, OverwritesNothingAndLeavesNoHalf) {
  Write("there", "precious");
  EXPECT_EQ(PackDump({}, dir_.path() + "/there").error().code, Code::kAlreadyExists);
  EXPECT_EQ(*ReadFile(dir_.path() + "/there", 100), "precious");
  EXPECT_FALSE(PackDump({}, dir_.path() + "/absent/dump"));
}

TEST_F(DumpTest, CommandSaysWhatItHasWritten) {
  const std::string archive = dir_.path() + "/dump.tar.gz";
  std::ostringstream out;
  std::ostringstream err;
  const std::vector<std::string> words = {
      "debug", "dump", archive, "--address", arguments_.address, "--config", arguments_.config};
  EXPECT_EQ(RunCommand(words, out, err), 0) << err.str();
  EXPECT_THAT(out.str(), AllOf(HasSubstr(archive), HasSubstr("trace.json")));
  EXPECT_EQ(RunCommand(words, out, err), 1);
  EXPECT_THAT(err.str(), HasSubstr("exists; name another file"));
  EXPECT_EQ(RunCommand({"debug", "core"}, out, err), 1);
}

TEST_F(DumpTest, FindsRecordsWithoutAKeeper) {
  const std::string bundle = dir_.path() + "/io.containerd.runtime.v2.task/default/c1";
  ASSERT_TRUE(os::MakeDirs(bundle, 0700));
  ASSERT_TRUE(os::MakeDirs(dir_.path() + "/io.containerd.runtime.v2.task/default/others", 0700));
  store::Record record;
  record.ns = *Namespace::Parse("default");
  record.id = "c1";
  record.bundle = bundle;
  record.state = store::State::kRunning;
  record.annotations = {{"io.example/key", "hush"}};
  record.options_json = R"({"Token":"hush"})";
  record.blobs = {{"sandbox", "hush"}};
  record.stdio.out = "binary:///bin/logger?auth=hush";
  store::ExecRecord exec;
  exec.id = *ExecId::Parse("e1");
  exec.spec_json = R"({"env":["A=hush"]})";
  record.execs.push_back(exec);
  ASSERT_TRUE(store::Write(record));

  EXPECT_THAT(BundlesOf(nullptr, {dir_.path(), dir_.path() + "/absent", dir_.path()}),
              ElementsAre(bundle));
  const auto text = RecordText(bundle);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(*text, AllOf(HasSubstr("\"state\": \"running\""), HasSubstr("io.example/key"),
                           HasSubstr("\"id\": \"e1\""), Not(HasSubstr("hush"))));
}

}  // namespace
}  // namespace gantry::ctl
