// SPDX-License-Identifier: Apache-2.0
//
// A container's life, from its spec to nothing left of it, with the real agent.
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/container/pod_fixture.h"

namespace gantry::vmm {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class VmmContainers : public PodTest {
 protected:
  /// Nothing of any container is left, in the guest or here.
  void ExpectNothingLeft() {
    EXPECT_THAT(Listed(), IsEmpty());
    EXPECT_THAT(vm_.storage.added, IsEmpty());
    EXPECT_THAT(vm_.rooms, IsEmpty());
    EXPECT_THAT(vm_.disks, IsEmpty());
  }
};

TEST_F(VmmContainers, RunWithTheirStreamsAndTellHowTheyEnd) {
  const ContainerRequest request =
      RequestOf({.linux_part = R"("resources": {"memory": {"limit": 67108864}})",
                 .script = "read line; echo got $line; echo bad >&2; exit 7"});
  TestContext context(request.id.str());
  auto container = Create(request, context);
  EXPECT_EQ(context.fake.process.pid, vm_.vmm->pid()) << "the machine stands for it";
  EXPECT_EQ(context.fake.made_cgroups, CgroupDevices::kNotLimited);
  EXPECT_EQ(vm_.rooms[request.id.str()].memory, 67108864);
  ASSERT_TRUE(container->Start());
  auto& streams = context.fake.process.attached;
  EXPECT_EQ(context.fake.process.framings.at(Stream::kStdout), StreamFraming::kFrames);
  WriteStream(streams.at(Stream::kStdin), "word\n");
  EXPECT_EQ(vmm::ReadStream(streams.at(Stream::kStdout)), "got word\n");
  EXPECT_EQ(vmm::ReadStream(streams.at(Stream::kStderr)), "bad\n");
  EXPECT_EQ(context.WaitForExit(), 7U);
  EXPECT_EQ(container->Kill(SIGTERM).error().code, Code::kNotFound);
  ASSERT_TRUE(container->Delete());
  ASSERT_TRUE(container->Delete()) << "again";
  EXPECT_THAT(context.words(), ElementsAre("exited 7"));
  EXPECT_THAT(context.fake.hooks, ElementsAre(HookPoint::kCreate, HookPoint::kStart,
                                              HookPoint::kDelete, HookPoint::kDelete));
  ExpectNothingLeft();
}

TEST_F(VmmContainers, TakeSignals) {
  const ContainerRequest request =
      RequestOf({.script = "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  EXPECT_EQ(ReadUntil(context.fake.process.attached.at(Stream::kStdout), "up"), "up\n");
  ASSERT_TRUE(container->Kill(SIGTERM));
  EXPECT_EQ(context.WaitForExit(), 5U);
  const ContainerRequest other = RequestOf({.script = "sleep 1000 & echo up; wait"});
  TestContext its(other.id.str());
  auto all = Run(other, its);
  EXPECT_EQ(ReadUntil(its.fake.process.attached.at(Stream::kStdout), "up"), "up\n");
  ASSERT_TRUE(all->KillAll(SIGKILL));
  EXPECT_EQ(its.WaitForExit(), 137U);
  EXPECT_TRUE(container->Delete() && all->Delete());
}

TEST_F(VmmContainers, AreKilledByTheirDelete) {
  const ContainerRequest request = RequestOf({.script = "sleep 1000"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  ASSERT_TRUE(container->Delete());
  EXPECT_THAT(context.words(), ElementsAre("exited 137")) << "told before Delete has returned";
  ExpectNothingLeft();
}

TEST_F(VmmContainers, StandStillAndAreMeasured) {
  const ContainerRequest request = RequestOf({.script = "while :; do :; done"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  ASSERT_TRUE(container->Pause());
  ASSERT_TRUE(container->Resume());
  const auto processes = container->Processes();
  ASSERT_TRUE(processes);
  EXPECT_EQ(processes->size(), 1U);
  ASSERT_TRUE(container->Update(R"({"memory": {"limit": 33554432}, "cpu": {"cpus": "0-99"}})"));
  EXPECT_EQ(vm_.rooms[request.id.str()].memory, 33554432);
  ASSERT_TRUE(container->Update(R"({"cpu": {"quota": 50000, "period": 100000}})"));
  EXPECT_EQ(vm_.rooms[request.id.str()], (Limits{50000, 100000, 33554432})) << "the rest stays";
  const auto stats = container->Stats();
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->memory.limit_bytes, 33554432U);
  machine_->End("killed");
  const auto last = container->Stats();
  ASSERT_TRUE(last) << "what it had used until then";
  EXPECT_EQ(last->memory.limit_bytes, 33554432U);
  EXPECT_TRUE(container->Delete());
}

TEST_F(VmmContainers, HaveATerminal) {
  container::Config config{.script = "stty size; read line; stty size; echo got $line"};
  config.process = R"("terminal": true, "consoleSize": {"width": 33, "height": 11})";
  config.mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                     {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                      "options": ["newinstance", "ptmxmode=0666"]})";
  const ContainerRequest request = RequestOf(config, true);
  TestContext context(request.id.str());
  auto container = Run(request, context);
  auto& ways = context.fake.process.attached;
  EXPECT_EQ(ways.size(), 2U);
  EXPECT_EQ(ReadUntil(ways.at(Stream::kStdout), "\n"), "11 33\r\n");
  ASSERT_TRUE(container->Resize({.width = 80, .height = 24}));
  WriteStream(ways.at(Stream::kStdin), "word\n");
  EXPECT_THAT(vmm::ReadStream(ways.at(Stream::kStdout)), HasSubstr("24 80\r\ngot word\r\n"));
  EXPECT_EQ(context.WaitForExit(), 0U);
  EXPECT_TRUE(container->Delete());
}

TEST_F(VmmContainers, HaveTheirFilesAndDisksAndGiveThemBack) {
  vm_.storage.disks = {{.serial = "layer1", .path = "/dev/null", .read_only = true}};
  vm_.storage.mounts = {{.type = "erofs", .source = "", .serial = "layer1", .target = "/layer"}};
  const ContainerRequest request = RequestOf({.script = "exit 0"});
  TestContext context(request.id.str());
  auto container = Create(request, context);
  EXPECT_THAT(vm_.disks, ElementsAre("layer1"));
  ASSERT_TRUE(container->Delete());
  EXPECT_EQ(vm_.host->Machine(), "attach 1\ndetach 1\n");
  ExpectNothingLeft();
}

// K8, K18.
TEST_F(VmmContainers, ThatCannotBeMadeLeaveNothingAndTheirIdIsFree) {
  const ContainerRequest request = RequestOf({.script = "exit 3"});
  const auto fails = [&](const ContainerRequest& asked) {
    TestContext context(asked.id.str());
    VmmContainer container(asked, context.fake, pod_, false);
    Status created = container.Create(asked, nullptr);
    EXPECT_FALSE(created);
    EXPECT_THAT(context.fake.hooks, Contains(HookPoint::kDelete));
    ExpectNothingLeft();
    return created ? Error() : created.error();
  };
  vm_.refuse_room = Error{Code::kResourceExhausted, 0, "no more memory", {}};
  EXPECT_EQ(fails(request).code, Code::kResourceExhausted);
  vm_.refuse_room.reset();
  vm_.storage.refuse = Error{Code::kFailedPrecondition, 0, "mount '/x': a socket", {}};
  EXPECT_THAT(fails(request).message, HasSubstr("mount '/x': a socket"));
  vm_.storage.refuse.reset();
  ContainerRequest missing = request;
  missing.spec_json.replace(missing.spec_json.find("\"sh\""), 4, "\"nosuch\"");
  const Error error = fails(missing);
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("nosuch"));
  TestContext context(request.id.str());
  auto container = Run(request, context);
  EXPECT_EQ(context.WaitForExit(), 3U);
  EXPECT_TRUE(container->Delete());
}

TEST_F(VmmContainers, AreRefusedByNameBeforeAnythingIsMade) {
  const auto refused = [&](ContainerRequest request, const InsideHooks& hooks = {}) {
    TestContext context(request.id.str());
    context.fake.inside_hooks = hooks;
    VmmContainer container(request, context.fake, pod_, false);
    Status created = container.Create(request, nullptr);
    EXPECT_FALSE(created);
    EXPECT_FALSE(context.fake.made_cgroups);
    return created ? std::string() : created.error().message;
  };
  EXPECT_THAT(refused(RequestOf({}), {.create_container = true}),
              HasSubstr("'hooks.createContainer'"));
  ContainerRequest restored = RequestOf({});
  restored.checkpoint = "/somewhere";
  EXPECT_THAT(refused(restored), HasSubstr("checkpoint"));
  ContainerRequest in_host = RequestOf({});
  in_host.spec_json = container::Bundle::TextOf({});
  EXPECT_THAT(refused(in_host), HasSubstr("hostNetwork"));
}

}  // namespace
}  // namespace gantry::vmm
