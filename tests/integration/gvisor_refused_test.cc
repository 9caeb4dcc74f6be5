// SPDX-License-Identifier: Apache-2.0
//
// Containers that gVisor cannot make: the error names the cause, and the id is free after it.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class GvisorRefused : public GvisorTest {
 protected:
  /// The words of `ctr run` that fail, saying so; then the same id works.
  static void ExpectRefused(const Output& output, const std::string& id, const std::string& cause) {
    EXPECT_NE(output.status, 0);
    EXPECT_NE(output.status, Output::kTimedOut);
    EXPECT_THAT(output.err, HasSubstr(cause));
    Ctr({"containers", "rm", id});  // With a failed Create ctr leaves the container.
    const Output again = RunContainer({"--rm"}, id, {"echo", "fine"});
    EXPECT_EQ(again.out, "fine\n") << again.Text();
  }

  /// With a file of this content as runsc.
  Output RunWithRunsc(const std::string& id, const std::string& script, bool executable = true) {
    const std::string path = settings().root + "/" + id + "-runsc";
    if (!script.empty()) {
      WriteText(path, script);
      std::filesystem::permissions(path, std::filesystem::perms(executable ? 0755 : 0644));
    }
    return RunContainer(WithOptions("binary_name = \"" + path + "\"\n"), id, {"true"});
  }
};

TEST_F(GvisorRefused, WithoutARootfs) {
  const std::string id = Id();
  Words words{"run",
              "--runtime",
              settings().runtime,
              "--fifo-dir",
              node().fifo_dir(),
              "--rootfs",
              "/no/such/root",
              id,
              "true"};
  ExpectRefused(Ctr(words), id, "/no/such/root");
}

TEST_F(GvisorRefused, WithAFlagThatAPodMayNotSet) {
  const std::string id = Id();
  const Output output =
      RunContainer({"--annotation", "dev.gvisor.flag.platform=ptrace"}, id, {"true"});
  ExpectRefused(output, id, "platform");
}

TEST_F(GvisorRefused, WithAFlagThatRunscDoesNotHave) {
  const std::string id = Id();
  const Output output =
      RunContainer(WithOptions("[runsc_config]\nno-such-flag = \"1\"\n"), id, {"true"});
  ExpectRefused(output, id, "no-such-flag");
}

TEST_F(GvisorRefused, WithABundleOfFlagsThatIsNotTrue) {
  const std::string id = Id();
  const std::string bundle = "dev.gvisor.bundle.no-such-" + id;
  ExpectRefused(RunContainer({"--annotation", bundle + "=1"}, id, {"true"}), id, bundle);
  // Where it is, and runsc has none of that name, it is said, and the container runs.
  const Output ran =
      RunContainer({"--rm", "--annotation", bundle + "=true"}, Id("-runs"), {"echo", "fine"});
  EXPECT_EQ(ran.out, "fine\n") << ran.Text();
  EXPECT_TRUE(WaitForText(settings().run_dir + "/gantry.log", "annotation '" + bundle + "'"));
}

TEST_F(GvisorRefused, WithoutRunsc) {
  const std::string id = Id();
  ExpectRefused(RunWithRunsc(id, ""), id, id + "-runsc");
}

TEST_F(GvisorRefused, WithARunscThatIsNotExecutable) {
  const std::string id = Id();
  ExpectRefused(RunWithRunsc(id, "#!/bin/sh\n", false), id, id + "-runsc");
}

TEST_F(GvisorRefused, WithARunscThatIsNone) {
  const std::string id = Id();
  ExpectRefused(RunWithRunsc(id, "#!/bin/sh\necho what-a-mess\n"), id, "is it runsc?");
}

TEST_F(GvisorRefused, WithARunscThatFails) {
  const std::string id = Id();
  ExpectRefused(RunWithRunsc(id, "#!/bin/sh\necho what-a-mess >&2\nexit 1\n"), id, "what-a-mess");
}

TEST_F(GvisorRefused, WithARunscOfAnotherGeneration) {
  const std::string id = Id();
  ExpectRefused(RunWithRunsc(id, "#!/bin/sh\necho ' -bundle x'\n"), id, "this build has no");
}

TEST_F(GvisorRefused, WithASentryOfAnotherRelease) {
  if (!std::filesystem::exists(OtherRunsc())) {
    GTEST_SKIP() << "needs the other release, " << OtherRunsc();
  }
  const std::string id = Id();
  const std::string folder = settings().root + "/" + id + "-release";
  std::filesystem::create_directories(folder + "/gvisor-bin");
  const std::string sidecar = folder + "/gvisor-bin/gvisor_sentry";
  std::filesystem::copy_file(Runsc(), folder + "/runsc");
  std::filesystem::copy_file(OtherRunsc(), sidecar);
  const Words flags = WithOptions("binary_name = \"" + folder + "/runsc\"\n");
  ExpectRefused(RunContainer(flags, id, {"true"}), id,
                "its sentry '" + sidecar + "' is of release");
  // One of the same release is booted, told that it has to be.
  std::filesystem::remove(sidecar);
  std::filesystem::copy_file(Runsc(), sidecar);
  StartDetached(id, {"sleep", "1000"}, flags);
  const std::string proc = "/proc/" + std::to_string(FindTask(id).pid);
  EXPECT_EQ(std::filesystem::read_symlink(proc + "/exe"), sidecar);
  EXPECT_THAT(ReadText(proc + "/environ"), StartsWith("GVISOR_ENFORCE_RELEASE="));
  Remove(id);
  std::filesystem::remove_all(folder);
}

TEST_F(GvisorRefused, WithASentryThatDoesNotBoot) {
  const std::string id = Id();
  const Output output =
      RunContainer(WithOptions("[runsc_config]\nplatform = \"nosuch\"\n"), id, {"true"});
  // In the sentry's own words.
  ExpectRefused(output, id, "nosuch");
}

TEST_F(GvisorRefused, WithACommandThatIsNotThere) {
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  StartDetached(root, {"sleep", "1000"}, AsRoot(root));
  const Output output = RunContainer(AsFurther(root), further, {"/no/such/program"});
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, HasSubstr("/no/such/program"));
  // ctr has removed the task, as it does with one that it cannot start.
  EXPECT_EQ(FindTask(further).pid, 0);
  EXPECT_EQ(Ctr({"containers", "rm", further}).status, 0);
  const Output exec = Exec(root, {"/no/such/exec"});
  EXPECT_NE(exec.status, 0);
  EXPECT_THAT(exec.err, HasSubstr("/no/such/exec"));
  EXPECT_EQ(Exec(root, {"echo", "on"}).out, "on\n");
  Words flags = AsFurther(root);
  flags.emplace_back("--rm");
  // With another id: what the sentry has begun under the first one it keeps.
  const Output again = RunContainer(flags, Id("-again"), {"echo", "fine"});
  EXPECT_EQ(again.out, "fine\n") << again.Text();
  Remove(root);
}

TEST_F(GvisorRefused, ButNotForTheLengthOfItsBundlesPath) {
  // Longer than the path of a socket may be.
  const std::string id = Id("-" + std::string(65, 'x'));
  ASSERT_GT((node().bundles() + "/" + id).size(), 108U);
  StartDetached(id, {"sleep", "1000"});
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).status, 4);
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e
