// SPDX-License-Identifier: Apache-2.0
//
// The programs as they are called at odd moments, as installed: the shim outside any bundle,
// without a standard input, with words that nobody knows; gantryctl on a node that has nothing yet,
// or lacks a plugin. Each answers, and none aborts.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

class ShimCalls : public E2eTest {
 protected:
  void SetUp() override {
    E2eTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure() && settings().stock()) {
      GTEST_SKIP() << "asks for what the stock shim does not promise";
    }
  }

  /// In /. `redirection`: of its streams, as the shell has it.
  static Output Call(const Words& words, const std::string& redirection) {
    Words all{"env",
              "-i",
              "PATH=/usr/bin:/bin",
              "GANTRY_RUN_DIR=" + settings().run_dir,
              "sh",
              "-c",
              "cd / && exec \"$0\" \"$@\" " + redirection};
    all.push_back(settings().gantry_bin + "/containerd-shim-gantry-v1");
    all.insert(all.end(), words.begin(), words.end());
    return RunProgram(all);
  }

  /// It has ended by itself.
  static void ExpectEnds(const Output& output, const Words& words) {
    EXPECT_NE(output.status, Output::kTimedOut) << ::testing::PrintToString(words);
    EXPECT_LT(output.status, 128) << ::testing::PrintToString(words) << output.Text();
  }

  static constexpr const char* kRedirections[] = {"", "<&-", "<&- 2>&-", ">&- 2>&-"};
};

TEST_F(ShimCalls, ForInformationAreAnsweredOutsideABundle) {
  for (const char* streams : {"", "<&-"}) {
    for (const Words& words : {Words{"-info"}, {"-v"}, {"--info"}, {"-version"}}) {
      const Output output = Call(words, streams);
      EXPECT_EQ(output.status, 0) << words.front() << streams << " " << output.Text();
      EXPECT_NE(output.out, "") << words.front() << streams;
    }
  }
}

TEST_F(ShimCalls, ThatMakeNoSenseAreRefused) {
  const Words calls[] = {{},
                         {"start"},
                         {"delete"},
                         {"-id", "x", "start"},
                         {"-id", "x", "delete"},
                         {"-namespace", "", "-id", "x", "start"},
                         {"-no-such-flag"},
                         {"-no-such-flag=5", "-info="},
                         {"-namespace"},
                         {"fly"},
                         {std::string(100000, 'x')}};
  for (const Words& words : calls) {
    for (const char* streams : kRedirections) {
      const Output output = Call(words, streams);
      ExpectEnds(output, words);
      EXPECT_NE(output.status, 0) << ::testing::PrintToString(words) << streams;
    }
    EXPECT_NE(Call(words, "").err, "") << ::testing::PrintToString(words);
  }
}

/// gantryctl with a configuration of the test's.
class CtlCalls : public ShimCalls {
 protected:
  static Output Ctl(const std::string& configuration, const Words& words) {
    const std::string folder = settings().root + "/ctl";
    std::filesystem::create_directories(folder);
    WriteText(folder + "/gantry.yaml", configuration);
    Words all{"env", "GANTRY_RUN_DIR=" + folder + "/no/run", settings().gantry_bin + "/gantryctl",
              "--config", folder + "/gantry.yaml"};
    all.insert(all.end(), words.begin(), words.end());
    Output output = RunProgram(all);
    EXPECT_FALSE(std::filesystem::exists(folder + "/no")) << "it was only to look";
    std::filesystem::remove_all(folder);
    return output;
  }
};

TEST_F(CtlCalls, NameTheLibraryThatIsMissing) {
  const std::string without =
      "version: 1\ndefault_handler: gone\nhandlers:\n  gone: {backend: gone}\n"
      "backends:\n  gone: {path: /no/such/libgantry_gone.so}\n";
  const Output check = Ctl(without, {"check"});
  EXPECT_NE(check.status, 0);
  EXPECT_THAT(check.Text(), HasSubstr("/no/such/libgantry_gone.so"));
  const Output doctor = Ctl(without, {"doctor"});
  EXPECT_NE(doctor.status, 0);
  EXPECT_THAT(doctor.Text(), HasSubstr("/no/such/libgantry_gone.so"));
}

TEST_F(CtlCalls, LoadABackendOnANodeThatHasNothingYet) {
  if (!settings().wasm()) {
    GTEST_SKIP() << "is about the wasm backend";
  }
  const std::string cache = settings().root + "/no/cache";
  const std::string configuration =
      "version: 1\ndefault_handler: wasm\nhandlers:\n  wasm: {backend: wasm}\n"
      "backends:\n  wasm:\n    options: {cache_dir: " +
      cache + "}\n";
  const Output check = Ctl(configuration, {"check"});
  EXPECT_EQ(check.status, 0) << check.Text();
  EXPECT_THAT(check.out, HasSubstr("in order"));
  EXPECT_THAT(check.Text(), Not(HasSubstr("FATAL")));
  EXPECT_THAT(Ctl(configuration, {"doctor"}).out, HasSubstr("a WebAssembly engine"));
  EXPECT_FALSE(std::filesystem::exists(cache));
}

}  // namespace
}  // namespace gantry::e2e
