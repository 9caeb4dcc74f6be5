// SPDX-License-Identifier: Apache-2.0
#include "core/setup/plan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "core/setup/block.h"
#include "core/setup/config_file.h"
#include "tests/unit/setup/samples.h"

namespace gantry::setup {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// The text with that of its imports, as containerd 2.x sees both; empty: it is no TOML. Of what is
/// ours in two files it takes the later one, so a main file's block is left out.
std::string Merged(const std::string& path) {
  std::string text = *ReadFile(path, 1 << 20);
  if (const auto block = FindBlock(text, path); block && *block) {
    text = WithoutBlock(text, **block);
  }
  const auto parsed = ParseConfig(text, path);
  if (!parsed) {
    return "";
  }
  std::string merged = "\n";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("version") && !line.starts_with("imports")) {
      merged += line + "\n";
    }
  }
  for (const std::string& import : parsed->imports) {
    if (!import.contains('*')) {
      merged += Merged(import);
    }
  }
  return merged;
}

class PlanTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::move(*os::TempDir::Create());
    Say("2.1.9");
  }

  /// A containerd that is of this release and takes what is TOML.
  void Say(const std::string& release) {
    ask_ = [release](const std::string&, const std::vector<std::string>& arguments,
                     bool with_errors) -> Result<std::string> {
      if (arguments.front() == "--version") {
        return "containerd github.com/containerd/containerd/v2 v" + release + "\n";
      }
      const std::string dump = Merged(arguments.at(1));
      return dump.empty() && with_errors ? "a warning\ncontainerd: not like that\n" : dump;
    };
  }

  Layout LayoutOf(const std::string& distribution = "containerd") {
    return *FindLayout(root_.path(), distribution, "");
  }

  std::string Write(const std::string& path, const std::string& text) {
    EXPECT_TRUE(os::MakeDirs(path.substr(0, path.rfind('/')), 0755));
    EXPECT_TRUE(WriteFile(path, text, 0640));
    return path;
  }

  Result<Plan> Planned(const Layout& layout, std::string_view words = "runc,wasm") {
    const Wanted wanted{.runtimes = *ParseRuntimes(words, Sandboxer::kPodsandbox),
                        .shim = "",
                        .grpc_address = "/run/gantry/grpc.sock"};
    return PlanSetup(layout, wanted, "containerd", ask_);
  }

  /// Sets up, finds nothing to do, and takes it back: each file is as it was.
  void ExpectRoundTrip(const Layout& layout, const std::string& place) {
    const auto before = Files();
    const auto plan = Planned(layout);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    EXPECT_EQ(plan->place, place);
    EXPECT_EQ(Files(), before) << "a plan has changed something";
    ASSERT_TRUE(CarryOut(*plan));
    EXPECT_THAT(Files().at(place), HasSubstr("runtimes.wasm]\n"));
    const auto again = Planned(layout);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_THAT(again->changes, IsEmpty());
    const auto back = PlanUndo(layout);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    ASSERT_TRUE(CarryOut(*back));
    EXPECT_EQ(Files(), before);
  }

  void ExpectRefused(const Layout& layout, const std::string& words, const std::string& message) {
    const auto before = Files();
    const auto plan = Planned(layout, words);
    ASSERT_FALSE(plan.has_value());
    EXPECT_THAT(plan.error().message, HasSubstr(message));
    EXPECT_EQ(Files(), before);
  }

  /// What is below the root; of a folder an empty text.
  std::map<std::string, std::string> Files() {
    std::map<std::string, std::string> files;
    Collect(root_.path(), files);
    return files;
  }

  static void Collect(const std::string& folder, std::map<std::string, std::string>& files) {
    const auto names = ListDirectory(folder);
    for (const std::string& name : *names) {
      const std::string path = folder + "/" + name;
      const auto text = ReadFile(path, 1 << 20);
      files[path] = text ? *text : "";
      if (!text) {
        Collect(path, files);
      }
    }
  }

  os::TempDir root_;
  Ask ask_;
};

TEST_F(PlanTest, EndsTheConfigurationOfContainerd1) {
  for (const std::string& text : {kDefault17, kDebian, kDebian.substr(0, kDebian.size() - 1)}) {
    const Layout layout = LayoutOf();
    Write(layout.config, text);
    for (const char* const release : {"1.6.20", "1.7.24"}) {
      Say(release);
      ExpectRoundTrip(layout, layout.config);
    }
  }
}

// The first runtime of a file takes its place.
TEST_F(PlanTest, KeepsTheBuiltInRuntimeOfContainerd1) {
  Say("1.7.24");
  const Layout layout = LayoutOf();
  Write(layout.config, kDebian);
  EXPECT_THAT(Planned(layout)->changes.front().after.value(),
              HasSubstr("containerd.runtimes.runc]\n  runtime_type = \"io.containerd.runc.v2\"\n"));
  ExpectRefused(layout, "wasm=runc", "of its own");
  Write(layout.config, kDefault17);
  const std::string text = Planned(layout)->changes.front().after.value();
  EXPECT_EQ(text.find("runtimes.runc]"), text.rfind("runtimes.runc]"));
}

TEST_F(PlanTest, EndsTheConfigurationOfContainerd2WithoutImports) {
  const Layout layout = LayoutOf();
  Write(layout.config, kDefault21);
  ExpectRoundTrip(layout, layout.config);
  EXPECT_THAT(Planned(layout)->changes.front().after.value(),
              HasSubstr("[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.gantry]"));
}

TEST_F(PlanTest, OfContainerd2WithVersion2HasItsTables) {
  const Layout layout = LayoutOf();
  Write(layout.config, kDefault17);
  ExpectRoundTrip(layout, layout.config);
  EXPECT_THAT(Planned(layout)->changes.front().after.value(),
              HasSubstr("[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.gantry]"));
}

TEST_F(PlanTest, IsAFileOfItsOwnWhereItIsImported) {
  const Layout layout = LayoutOf();
  const std::string folder = root_.path() + "/etc/containerd/conf.d";
  Write(layout.config, "version = 3\nimports = [\"" + folder + "/*.toml\"]\n");
  ExpectRoundTrip(layout, folder + "/gantry.toml");
  // Of the version of the main file: a later one is refused, an earlier one migrated.
  EXPECT_THAT(Planned(layout)->changes.front().after.value(), HasSubstr("\nversion = 3\n"));
}

TEST_F(PlanTest, OfContainerd1IsNeverAFileByImports) {
  Say("1.7.24");
  const Layout layout = LayoutOf();
  Write(layout.config,
        "version = 2\nimports = [\"" + root_.path() + "/etc/containerd/conf.d/*.toml\"]\n");
  EXPECT_EQ(Planned(layout)->place, layout.config);
}

TEST_F(PlanTest, MakesAConfigurationWhereThereIsNone) {
  const Layout layout = LayoutOf();
  ASSERT_TRUE(os::MakeDirs(root_.path() + "/etc", 0755));
  ExpectRoundTrip(layout, layout.config);
  EXPECT_FALSE(Exists(root_.path() + "/etc/containerd"));
  Say("1.6.20");
  EXPECT_THAT(Planned(layout)->changes.front().after.value(), HasSubstr("\nversion = 2\n"));
  Say("2.3.4");
  EXPECT_THAT(Planned(layout)->changes.front().after.value(), HasSubstr("\nversion = 3\n"));
}

TEST_F(PlanTest, ChangesWhatIsThereToOtherRuntimes) {
  const Layout layout = LayoutOf();
  Write(layout.config, kDefault21);
  ASSERT_TRUE(CarryOut(*Planned(layout, "runc,wasm")));
  const auto plan = Planned(layout, "runc:controller,vmm=machine");
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  ASSERT_TRUE(CarryOut(*plan));
  const std::string text = Files().at(layout.config);
  EXPECT_THAT(text, HasSubstr("runtimes.machine]"));
  EXPECT_THAT(text, HasSubstr("[proxy_plugins.gantry]"));
  EXPECT_THAT(text, testing::Not(HasSubstr("wasm")));
  ASSERT_TRUE(CarryOut(*PlanUndo(layout)));
  EXPECT_EQ(Files().at(layout.config), kDefault21);
}

TEST_F(PlanTest, MovesToAFileOfItsOwnWhenContainerdCan) {
  const Layout layout = LayoutOf();
  const std::string folder = root_.path() + "/etc/containerd/conf.d";
  const std::string text = "version = 2\nimports = [\"" + folder + "/*.toml\"]\n";
  Write(layout.config, text);
  Say("1.7.24");
  ASSERT_TRUE(CarryOut(*Planned(layout)));
  Say("2.1.9");
  const auto plan = Planned(layout);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_THAT(plan->changes, SizeIs(2));
  ASSERT_TRUE(CarryOut(*plan));
  EXPECT_EQ(Files().at(layout.config), text);
  EXPECT_THAT(Files().at(folder + "/gantry.toml"), HasSubstr("runtimes.gantry]"));
}

TEST_F(PlanTest, OfK3sIsAFileOfItsOwn) {
  const Layout layout = LayoutOf("k3s");
  const std::string folder = layout.config.substr(0, layout.config.rfind('/'));
  std::string text = kK3s;
  text.replace(text.find("FOLDER"), 6, folder);
  Write(layout.config, text);
  ExpectRoundTrip(layout, folder + "/config-v3.toml.d/gantry.toml");
}

TEST_F(PlanTest, OfRke2WithContainerd1IsATemplate) {
  Say("1.7.23-k3s2");
  const Layout layout = LayoutOf("rke2");
  Write(layout.config, kRke2First);
  ExpectRoundTrip(layout, layout.TemplateOf(2));
  EXPECT_THAT(Planned(layout)->changes.front().after.value(),
              HasSubstr("{{ template \"base\" . }}\n\n[plugins."));
}

TEST_F(PlanTest, EndsATemplateThatIsThere) {
  Say("1.7.23-k3s2");
  const Layout layout = LayoutOf("rke2");
  Write(layout.config, kRke2First);
  Write(layout.TemplateOf(2), "{{ template \"base\" . }}\n[debug]\n  level = \"debug\"\n");
  ExpectRoundTrip(layout, layout.TemplateOf(2));
  EXPECT_THAT(Planned(layout)->changes.front().after.value(),
              testing::Not(HasSubstr("base\" . }}\n\n[plugins.")));
}

TEST_F(PlanTest, OfATemplateThatWasUsedChangesNothing) {
  Say("1.7.23-k3s2");
  const Layout layout = LayoutOf("rke2");
  Write(layout.config, kRke2First);
  const auto first = Planned(layout);
  ASSERT_TRUE(CarryOut(*first));
  // What rke2 writes of it, with the marks and without.
  const std::string ours = first->changes.front().after.value();
  const std::string tables = ours.substr(ours.find("[plugins"));
  for (const std::string& rendered : {kRke2First + ours.substr(0, ours.find("{{")) + tables,
                                      kRke2First + tables.substr(0, tables.find("# END"))}) {
    Write(layout.config, rendered);
    const auto again = Planned(layout);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_THAT(again->changes, IsEmpty());
  }
}

TEST_F(PlanTest, WaitsForADistributionToHaveStarted) {
  ExpectRefused(LayoutOf("k3s"), "runc", "start that once");
}

TEST_F(PlanTest, RefusesWhatIsBroken) {
  const Layout layout = LayoutOf();
  Write(layout.config, "version = 2\n[plugins\n");
  ExpectRefused(layout, "runc", "line 2");
  Write(layout.config, kDocker);
  ExpectRefused(layout, "runc", "`disabled_plugins`");
  Write(layout.config, "root = \"/x\"\n");
  ExpectRefused(layout, "runc", "of version 1");
  Write(layout.config, kDefault23);
  ExpectRefused(layout, "runc", "is of version 4, and containerd 2.1.9");
  Write(layout.config, "version = 3\nplugins = {x = {}}\n");
  ExpectRefused(layout, "runc", "as a table");
}

TEST_F(PlanTest, RefusesReleasesThatNobodyKnows) {
  Say("3.0.0");
  Write(LayoutOf().config, kDefault21);
  ExpectRefused(LayoutOf(), "runc", "containerd 3.0.0");
  Say("2.2.9");
  ExpectRefused(LayoutOf(), "runc:shim", "containerd 2.2.9 dies of such a pod");
}

TEST_F(PlanTest, RefusesWhatSomebodyElseHas) {
  const Layout layout = LayoutOf();
  Write(layout.config, kDefault21);
  ExpectRefused(layout, "runc=runc", "has a runtime 'runc' already ('io.containerd.runc.v2')");
  Write(layout.config, kDefault21 + "[proxy_plugins.gantry]\ntype = 'snapshot'\n");
  ExpectRefused(layout, "runc:controller", "a proxy plugin 'gantry'");
  const std::string folder = root_.path() + "/etc/containerd/conf.d";
  Write(layout.config, "version = 3\nimports = [\"" + folder + "/*.toml\"]\n");
  Write(folder + "/gantry.toml", "version = 3\n");
  ExpectRefused(layout, "runc", "not gantryctl's");
}

TEST_F(PlanTest, RefusesWhatContainerdDoesNotTake) {
  const Layout layout = LayoutOf();
  Write(layout.config, kDefault21);
  ask_ = [](const std::string&, const std::vector<std::string>& arguments,
            bool with_errors) -> Result<std::string> {
    return std::string(arguments.front() == "--version" ? "containerd x 2.1.9"
                       : with_errors                    ? "a warning\ncontainerd: not like that\n"
                                                        : "");
  };
  ExpectRefused(layout, "runc", "containerd: not like that");
}

TEST_F(PlanTest, RefusesWhenSomethingElseWouldChange) {
  const Layout layout = LayoutOf();
  Write(layout.config, kDefault21);
  int dumps = 0;
  const Ask merged = ask_;
  ask_ = [&dumps, merged](const std::string& program, const std::vector<std::string>& arguments,
                          bool with_errors) -> Result<std::string> {
    GANTRY_TRY(const std::string text, merged(program, arguments, with_errors));
    const bool dump = arguments.front() != "--version";
    return dump && ++dumps == 2 ? "oom = 1\n" + text : text;
  };
  ExpectRefused(layout, "runc", "another 'oom");
}

TEST_F(PlanTest, RefusesLinks) {
  const Layout layout = LayoutOf();
  Write(root_.path() + "/etc/containerd/real.toml", kDefault21);
  ASSERT_EQ(symlink("real.toml", layout.config.c_str()), 0);
  ExpectRefused(layout, "runc", "symbolic link to 'real.toml'");
  EXPECT_FALSE(PlanUndo(layout).has_value());
}

TEST_F(PlanTest, TakesBackOfWhatIsBrokenByNow) {
  const Layout layout = LayoutOf();
  Write(layout.config, kDefault21);
  ASSERT_TRUE(CarryOut(*Planned(layout)));
  const std::string broken = "[[[\n" + Files().at(layout.config);
  Write(layout.config, broken);
  ASSERT_TRUE(CarryOut(*PlanUndo(layout)));
  EXPECT_EQ(Files().at(layout.config), "[[[\n" + kDefault21);
}

TEST_F(PlanTest, HasNothingToTakeBackWhereNothingWasDone) {
  const Layout layout = LayoutOf();
  Write(layout.config, kDefault21);
  EXPECT_THAT(PlanUndo(layout)->changes, IsEmpty());
}

TEST_F(PlanTest, ThatFailsHalfWayIsTakenBack) {
  const std::string first = Write(root_.path() + "/a.toml", "a");
  const Plan plan{
      .changes = {{.path = first, .before = "a", .after = "b"},
                  {.path = root_.path() + "/c.toml", .before = "not there", .after = "d"}},
      .place = first,
      .notes = {}};
  EXPECT_FALSE(CarryOut(plan).has_value());
  EXPECT_EQ(Files().at(first), "a");
}

}  // namespace
}  // namespace gantry::setup
