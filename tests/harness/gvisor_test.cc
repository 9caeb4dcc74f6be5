// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

Words Annotated(const std::string& type, const std::string& pod) {
  return {"--annotation", "io.kubernetes.cri.container-type=" + type, "--annotation",
          "io.kubernetes.cri.sandbox-id=" + pod};
}

Program Up(Program program) {
  EXPECT_TRUE(program.ReadUntil("up\n")) << program.err();
  return program;
}

}  // namespace

void GvisorTest::SetUp() {
  if (!settings().gvisor()) {
    GTEST_SKIP() << "is about the gvisor backend";
  }
  E2eTest::SetUp();
}

Words GvisorTest::AsRoot(const std::string& pod) { return Annotated("sandbox", pod); }

Words GvisorTest::AsFurther(const std::string& pod) { return Annotated("container", pod); }

Words GvisorTest::WithOptions(const std::string& toml) {
  static int counter = 0;
  const std::string path = settings().root + "/options" + std::to_string(++counter) + ".toml";
  WriteText(path, toml);
  return {"--runtime-config-path", path};
}

Program GvisorTest::StartScript(const Words& flags, const std::string& id,
                                const std::string& script) {
  Words all{"--rm"};
  all.insert(all.end(), flags.begin(), flags.end());
  return Up(StartCtr(node(), RunWords(all, id, {"sh", "-c", "echo up; " + script}), {}));
}

Program GvisorTest::StartExec(const std::string& id, const std::string& script) {
  return Up(StartCtr(node(), ExecWords({}, id, {"sh", "-c", "echo up; " + script}), {}));
}

std::vector<HostProcess> GvisorTest::RunscsOf(const std::string& id, const std::string& name) {
  const std::string bundle = "--bundle=" + node().bundles() + "/" + id + " ";
  return Processes([&](const HostProcess& process) {
    return process.name == name && process.command.find(bundle) != std::string::npos;
  });
}

std::string GvisorTest::OtherRunsc() {
  return settings().RunscOf(settings().runsc_release == "20240729" ? "20260905" : "20240729");
}

}  // namespace gantry::e2e
