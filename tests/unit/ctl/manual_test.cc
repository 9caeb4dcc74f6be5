// SPDX-License-Identifier: Apache-2.0
//
// The completion for bash is run by bash; those for zsh and fish, which need not be there, are
// checked by them where they are.
#include "core/ctl/manual.h"

#include <chrono>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/ctl/commands.h"
#include "core/ctl/completions.h"
#include "core/ctl/run_tool.h"
#include "core/os/fs.h"

namespace gantry::ctl {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

constexpr auto kShellLimit = std::chrono::seconds(60);
constexpr size_t kMostOfShell = size_t{1} << 20;
constexpr char kShellPath[] = "/usr/local/bin:/usr/bin:/bin";

std::string HelpText(const std::vector<std::string>& words = {"--help"}) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunCommand(words, out, err), 0);
  return out.str();
}

/// The first words of the lines that begin so: commands by "  ", options by "--".
std::vector<std::string> CommandsInHelp() {
  std::vector<std::string> names;
  std::istringstream lines(HelpText());
  for (std::string line; std::getline(lines, line) && !line.starts_with("options");) {
    if (line.size() > 2 && line.starts_with("  ") && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

std::vector<std::string> OptionsIn(const std::string& text) {
  std::vector<std::string> names;
  for (size_t at = text.find("--", text.find("\noptions")); at != std::string::npos;
       at = text.find("--", at + 2)) {
    const size_t line = text.rfind('\n', at) + 1;
    const std::string before = text.substr(line, at - line);
    if (before.find_first_not_of(" ") == std::string::npos || before.ends_with("[ ")) {
      const size_t end = text.find_first_of(" ]\n", at);
      names.push_back(text.substr(at + 2, end - at - 2));
    }
  }
  return names;
}

class Manual : public testing::Test {
 protected:
  /// Of `shell`; empty: it is not there.
  static std::string Shell(const std::string& shell) {
    const auto path = FindInPath(kShellPath, shell);
    return path ? *path : std::string();
  }

  std::string Write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(WriteFile(dir_.path() + "/" + name, text, 0600));
    return dir_.path() + "/" + name;
  }

  /// What bash offers after `words`, the last of which is the one that is being typed.
  std::vector<std::string> Offered(const std::string& words) const {
    const std::string file = Write("completion", BashCompletion(help_));
    const std::string script = Format(
        "compopt() {{ :; }}; . {}; COMP_WORDS=(gantryctl {}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - "
        "1)); _gantryctl; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        file, words);
    const auto out = OutputOf({Shell("bash"), "-euc", script}, kShellLimit, kMostOfShell);
    EXPECT_TRUE(out) << out.error().message;
    std::vector<std::string> offered;
    std::istringstream lines(out ? *out : "");
    for (std::string line; std::getline(lines, line);) {
      offered.push_back(line);
    }
    return offered;
  }

  const Help help_ = ReadHelp();
  const os::TempDir dir_ = std::move(*os::TempDir::Create());
};

/// As roff has words with a minus.
std::string Escaped(std::string word) {
  for (size_t at = word.find('-'); at != std::string::npos; at = word.find('-', at + 2)) {
    word.insert(at, "\\");
  }
  return word;
}

TEST_F(Manual, HasEveryCommandAndOptionOfTheHelp) {
  const auto commands = CommandsInHelp();
  const auto options = OptionsIn(HelpText());
  ASSERT_THAT(commands, IsSupersetOf({"ps", "inspect", "trace", "debug", "NAME"}));
  ASSERT_THAT(options, IsSupersetOf({"help", "json", "namespace", "since"}));
  const std::string page = ManualPage(help_);
  const std::string bash = BashCompletion(help_);
  const std::string zsh = ZshCompletion(help_);
  const std::string fish = FishCompletion(help_);
  for (const std::string& command : commands) {
    EXPECT_THAT(page, HasSubstr("\\fB" + Escaped(command) + "\\fR")) << command;
    if (command != "NAME") {
      EXPECT_THAT(bash, HasSubstr("    " + command + ") words=")) << command;
      EXPECT_THAT(zsh, AllOf(HasSubstr("'" + command + ":"), HasSubstr("    " + command + ")\n")));
      EXPECT_THAT(fish, HasSubstr("-a " + command + " -d '")) << command;
    }
  }
  for (const std::string& option : options) {
    EXPECT_THAT(bash, HasSubstr("--" + option)) << option;
    EXPECT_THAT(zsh, HasSubstr("--" + option)) << option;
    EXPECT_THAT(fish, HasSubstr("-l " + option)) << option;
    EXPECT_THAT(page, HasSubstr("\\fB\\-\\-" + Escaped(option) + "\\fR")) << option;
  }
}

TEST_F(Manual, HasTheOptionsOfNodeSetupsOwnHelp) {
  const auto options = OptionsIn(HelpText({"node-setup", "--help"}));
  ASSERT_THAT(options, IsSupersetOf({"help", "handlers", "containerd-config", "json"}));
  const std::string page = ManualPage(help_);
  const std::string own_page = page.substr(page.find(".SH OPTIONS OF node\\-setup\n"));
  const std::string zsh = ZshCompletion(help_);
  const size_t begin = zsh.find("    node-setup)\n");
  const std::string own_zsh = zsh.substr(begin, zsh.find(";;", begin) - begin);
  const std::string fish = FishCompletion(help_);
  for (const std::string& option : options) {
    EXPECT_THAT(own_page, HasSubstr("\\fB\\-\\-" + Escaped(option) + "\\fR")) << option;
    EXPECT_THAT(own_zsh, HasSubstr("--" + option)) << option;
    EXPECT_THAT(fish, HasSubstr("-n '__fish_seen_subcommand_from node-setup' -l " + option + " "))
        << option;
  }
  EXPECT_THAT(own_zsh, Not(HasSubstr("--namespace")));
  EXPECT_THAT(fish, HasSubstr("-n 'not __fish_seen_subcommand_from node-setup' -l version"));
}

TEST_F(Manual, KnowsWhatIsForWhichCommand) {
  const auto since = std::ranges::find(help_.options, "since", &Help::Option::name);
  const auto all = std::ranges::find(help_.options, "all", &Help::Option::name);
  const auto json = std::ranges::find(help_.options, "json", &Help::Option::name);
  EXPECT_THAT(since->commands, ElementsAre("events", "logs", "trace"));
  EXPECT_EQ(since->value, "TIME");
  EXPECT_THAT(all->commands, ElementsAre("delete", "trace"));
  EXPECT_THAT(json->commands, ElementsAre());
  EXPECT_EQ(json->value, "");
  const auto debug = std::ranges::find(help_.commands, "debug", &Help::Command::name);
  EXPECT_EQ(debug->operands, "dump [FILE]");
  EXPECT_THAT(debug->text, testing::StartsWith("what a bug report needs"));
  const auto upgrade = std::ranges::find(help_.commands, "upgrade", &Help::Command::name);
  EXPECT_THAT(upgrade->text, testing::EndsWith("with --keeper: the keeper becomes that program"));
}

TEST_F(Manual, IsTheSameEachTime) {
  EXPECT_EQ(ManualPage(ReadHelp()), ManualPage(help_));
  EXPECT_EQ(BashCompletion(ReadHelp()), BashCompletion(help_));
}

TEST_F(Manual, BashCompletesCommandsAndTheirOptions) {
  if (Shell("bash").empty()) {
    GTEST_SKIP() << "there is no bash";
  }
  EXPECT_THAT(Offered("''"), IsSupersetOf({"ps", "trace", "debug", "--json"}));
  EXPECT_THAT(Offered("tr"), ElementsAre("trace"));
  EXPECT_THAT(Offered("debug ''"), Contains("dump"));
  EXPECT_THAT(Offered("trace --si"), ElementsAre("--since"));
  EXPECT_THAT(Offered("-n k8s.io trace --si"), ElementsAre("--since"));
  EXPECT_THAT(Offered("ps --"), AllOf(Contains("--costs"), Not(Contains("--since"))));
  EXPECT_THAT(Offered("--config " + dir_.path() + "/comp"),
              ElementsAre(dir_.path() + "/completion"));
}

TEST_F(Manual, BashCompletesTheOptionsOfNodeSetup) {
  if (Shell("bash").empty()) {
    GTEST_SKIP() << "there is no bash";
  }
  const auto offered = Offered("node-setup --");
  for (const std::string& option : OptionsIn(HelpText({"node-setup", "--help"}))) {
    EXPECT_THAT(offered, Contains("--" + option));
  }
  EXPECT_THAT(offered, Not(Contains("--namespace")));
  EXPECT_THAT(Offered("node-setup --handlers runc --un"), ElementsAre("--undo"));
  EXPECT_THAT(Offered("node-setup --shim " + dir_.path() + "/comp"),
              ElementsAre(dir_.path() + "/completion"));
}

TEST_F(Manual, OtherShellsTakeTheirs) {
  const std::string zsh = Write("_gantryctl", ZshCompletion(help_));
  const std::string fish = Write("gantryctl.fish", FishCompletion(help_));
  bool any = false;
  for (const auto& [shell, file] : {std::pair("zsh", zsh), std::pair("fish", fish)}) {
    if (const std::string path = Shell(shell); !path.empty()) {
      any = true;
      const auto checked = OutputOf({path, "-n", file}, kShellLimit, kMostOfShell);
      EXPECT_TRUE(checked) << checked.error().message;
    }
  }
  if (!any) {
    GTEST_SKIP() << "there is neither zsh nor fish";
  }
}

TEST_F(Manual, IsAPageThatManTakesWithoutAWarning) {
  const std::string groff = Shell("groff");
  if (groff.empty()) {
    GTEST_SKIP() << "there is no groff";
  }
  for (const std::string& page :
       {Write("gantryctl.8", ManualPage(help_)),
        std::string(GANTRY_SOURCE_DIR) + "/core/shim/containerd-shim-gantry-v1.8"}) {
    const auto shown =
        OutputOf({groff, "-man", "-Tascii", "-ww", "-z", page}, kShellLimit, kMostOfShell);
    ASSERT_TRUE(shown) << shown.error().message;
    EXPECT_EQ(*shown, "") << page;
  }
}

}  // namespace
}  // namespace gantry::ctl
