// SPDX-License-Identifier: Apache-2.0
//
// A handler of containerd's own runtime type whose shim is gantry's: `runtime_type` is
// io.containerd.runc.v2, `runtime_path` names gantry's shim. containerd then reads the
// handler's options as runc's, which a pod with a user namespace needs where the handler
// has any.
#include <sys/stat.h>

#include "tests/harness/cri_test.h"
#include "tests/harness/user_namespace.h"

namespace gantry::e2e {
namespace {

class CriRuncType : public CriTest {
 protected:
  void SetUp() override {
    if (!settings().runc()) {
      GTEST_SKIP() << "the options are the runc backend's";
    }
    CriTest::SetUp();
    WriteText(settings().counted_oci(),
              "#!/bin/sh\necho \"$*\" >>" + Calls() + "\nexec " + settings().oci + " \"$@\"\n");
    ASSERT_EQ(chmod(settings().counted_oci().c_str(), 0755), 0);
    WriteText(Calls(), "");
  }

  std::string handler() const override { return "gantry-runc-type"; }

  static std::string Calls() { return settings().counted_oci() + ".calls"; }

  /// The OCI runtime that the handler's options name has made it.
  static bool IsOfOptions(const std::string& id) {
    return ReadText(Calls()).find(id) != std::string::npos;
  }

  static std::string Inspect(const std::string& id) {
    return RunProgram({"env", "GANTRY_RUN_DIR=" + settings().run_dir,
                       settings().gantry_bin + "/gantryctl", "inspect", id, "--namespace", "k8s.io",
                       "--json"})
        .Text();
  }

  PodConfig MappedPod() {
    PodConfig config = Pod();
    config.hostname = "mapped";
    config.user_namespace = Mapping();
    return config;
  }

  /// Why a pod with a user namespace and a pause container cannot be here, whoever makes it.
  static std::string WhyNoMappedPod() {
    if (std::string why = WhyNoUserNamespace(); !why.empty()) {
      return why;
    }
    if (settings().release1()) {
      return settings().newer_cri
                 ? "the newer CRI server of containerd 1.7 makes the pause container without one"
             : settings().oci == "runc"
                 ? "runc 1.1 refuses what containerd 1.7 asks for: 'both namespace path and "
                   "non-matching mapping specified'"
                 : "";
    }
    return WhyNoMappedMounts(settings().oci);
  }
};

TEST_F(CriRuncType, HasItsOptions) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  for (const std::string& one : {pod, id}) {
    EXPECT_TRUE(IsOfOptions(one)) << one;
    const std::string said = Inspect(one);
    EXPECT_NE(said.find("\"backend\": \"runc\""), std::string::npos) << said;
  }
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
}

TEST_F(CriRuncType, OutlivesARestartOfContainerd) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  ASSERT_EQ(node().RestartContainerd(), "");
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(Exec(id, {"echo", "here"}).out, "here\n");
  const std::string second = RunContainerIn(pod, config, "two", {"sleep", "1000"});
  EXPECT_TRUE(IsOfOptions(second));
}

TEST_F(CriRuncType, HasItsOptionsInAPodWithAUserNamespace) {
  if (const std::string why = WhyNoMappedPod(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const PodConfig config = MappedPod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  EXPECT_EQ(MapOf(PidOf(id)), "0 200000 65536");
  EXPECT_TRUE(IsOfOptions(pod));
  EXPECT_TRUE(IsOfOptions(id));
  if (!settings().release1()) {
    // The options tell who is to own the streams. containerd 1.7 says it to no shim.
    EXPECT_EQ(Exec(id, {"sh", "-c", "echo said >/dev/stderr"}).err, "said\n");
  }
}

// Why it is needed: docs/kubernetes.md has what each release does with other types.
TEST_F(CriRuncType, OfAnotherNameHasOptionsOrAUserNamespace) {
  if (const std::string why = WhyNoMappedPod(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  PodConfig config = MappedPod();
  config.runtime_handler = "gantry-options";
  const std::string pod = RunPod(config);
  EXPECT_TRUE(IsOfOptions(pod));
  ContainerConfig container;
  container.name = "one";
  container.command = {"sleep", "1000"};
  const auto id = cri().Create(pod, config, container);
  ASSERT_TRUE(id) << id.error().message;
  const Status started = cri().Start(*id);
  if (settings().release1()) {
    EXPECT_TRUE(started) << started.error().message;
    EXPECT_TRUE(IsOfOptions(*id));
    return;
  }
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("failed to get runtime v2 options"), std::string::npos)
      << started.error().message;
}

}  // namespace
}  // namespace gantry::e2e
