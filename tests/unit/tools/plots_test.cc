// SPDX-License-Identifier: Apache-2.0
//
// tools/lib/plots.sh: the plots of docs/performance.md, of figures as the bench writes them.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "tests/harness/program.h"

namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Plots : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gantry::e2e::RunProgram({"sh", "-c", "command -v gnuplot"}).status != 0) {
      GTEST_SKIP() << "gnuplot is not installed (./run setup unit)";
    }
    rows_ = "[\n";
    for (const char* const row :
         {"memory-1", "memory-10", "memory-100", "state-1", "state-1-p99", "state-8", "state-8-p99",
          "state-64", "state-64-p99", "shim-start", "exec-crun", "exec-runc", "life-crun",
          "life-runc", "run-crun", "run-runc", "pod-sandbox"}) {
      AddRow(row);
    }
    for (const std::string gap : {"crash", "upgrade", "keeper"}) {
      for (const std::string count : {"1", "100", "500"}) {
        AddRow("gap-" + gap + "-" + count);
        parts_ += R"({"row":"gap-)" + gap + "-" + count +
                  R"(","part":"median of the rounds","ours":1.5,"peer":0.5},)" + "\n";
      }
    }
  }

  void AddRow(const std::string& id) {
    rows_ += R"({"id":")" + id +
             R"(","what":"it","ours":2048.0,"peer":4096.5,"unit":"x","ratio":0.5,"met":null},)" +
             "\n";
  }

  fs::path dir() const { return dir_.path(); }

  /// Into the folder `out`.
  void Draw(const std::string& out) {
    std::ofstream(dir() / "bench.json") << rows_ << "{}\n]\n";
    std::ofstream(dir() / "bench-parts.json") << parts_ << "{}\n]\n";
    const std::string lib = std::string(GANTRY_SOURCE_DIR) + "/tools/lib/";
    const auto drawn = gantry::e2e::RunProgram(
        {"bash", "-euc",
         ". " + lib + "ui.sh; . " + lib + "bench.sh; . " + lib + "plots.sh; bench_plots '" +
             dir().string() + "' '" + (dir() / out).string() + "'"});
    EXPECT_EQ(drawn.status, 0) << drawn.Text();
    EXPECT_EQ(drawn.err, "");
  }

  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(dir() / name).rdbuf();
    return text.str();
  }

  std::string rows_;
  std::string parts_ = "[\n";
  const gantry::os::TempDir dir_ = std::move(*gantry::os::TempDir::Create());
};

TEST_F(Plots, AreDrawnOfWhatTheBenchHasWritten) {
  AddRow("pod-start");
  Draw("one");
  for (const std::string name : {"memory", "latency", "times", "gaps"}) {
    EXPECT_THAT(Read("one/" + name + ".svg"),
                AllOf(StartsWith("<?xml"), HasSubstr("</svg>"), HasSubstr("gantry")))
        << name;
  }
  EXPECT_THAT(Read("one/gaps.svg"), AllOf(HasSubstr("kill -9 of the engine"), HasSubstr("500")));
}

TEST_F(Plots, AreTheSameOfTheSameFigures) {
  AddRow("pod-start");
  Draw("one");
  Draw("two");
  for (const std::string name : {"memory.svg", "latency.svg", "times.svg", "gaps.svg"}) {
    EXPECT_EQ(Read("one/" + name), Read("two/" + name)) << name;
  }
}

TEST_F(Plots, StayAsTheyAreWhereRowsAreMissing) {
  fs::create_directory(dir() / "one");
  std::ofstream(dir() / "one/times.svg") << "as it was";
  Draw("one");
  EXPECT_EQ(Read("one/times.svg"), "as it was");
  EXPECT_THAT(Read("one/memory.svg"), HasSubstr("</svg>"));
}

TEST(PlotsOfTheDocumentation, AreThere) {
  std::ifstream page(std::string(GANTRY_SOURCE_DIR) + "/docs/performance.md");
  std::stringstream text;
  text << page.rdbuf();
  for (const std::string name : {"memory", "latency", "times", "gaps"}) {
    EXPECT_THAT(text.str(), HasSubstr("(plots/" + name + ".svg)"));
    EXPECT_TRUE(fs::exists(std::string(GANTRY_SOURCE_DIR) + "/docs/plots/" + name + ".svg"));
  }
}

}  // namespace
