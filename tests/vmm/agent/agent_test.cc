// SPDX-License-Identifier: Apache-2.0
//
// The agent as the first process of a guest.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/unit/vmm/guest/stream_io.h"
#include "tests/vmm/agent/guest.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

constexpr const char* kBundle = "/run/gantry/bundle";

std::string Quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return "\"" + out + "\"";
}

struct Shape {
  std::string script;
  bool terminal = false;
  /// Of `linux.resources`.
  std::string resources = "{}";
  std::string namespaces =
      R"([{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "cgroup"}])";
};

std::string ProcessOf(const Shape& shape) {
  return Format(R"({{"terminal": {0}, "args": ["/bin/sh", "-c", {1}], "env": ["PATH=/bin"],
                     "cwd": "/", "user": {{"uid": 0, "gid": 0}},
                     "capabilities": {{"bounding": {2}, "effective": {2}, "permitted": {2}}}}})",
                shape.terminal, Quoted(shape.script),
                R"(["CAP_MKNOD", "CAP_DAC_OVERRIDE", "CAP_KILL"])");
}

std::string SpecOf(const Shape& shape) {
  return Format(
      R"({{"ociVersion": "1.0.2", "root": {{"path": "rootfs"}}, "process": {},
          "mounts": [{{"destination": "/proc", "type": "proc", "source": "proc"}},
                     {{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}},
                     {{"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                       "options": ["newinstance", "ptmxmode=0666"]}},
                     {{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup"}}],
          "linux": {{"namespaces": {}, "resources": {}}}}})",
      ProcessOf(shape), shape.namespaces, shape.resources);
}

/// One guest for all: a boot takes longer than any of these.
class AgentInGuest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!TestImage::Get().why_not.empty()) {
      return;
    }
    auto booted = RealGuest::Boot();
    if (!booted) {
      why_ = booted.error().message;
      return;
    }
    guest_ = std::move(*booted);
    const auto attached =
        guest_->Call(protocol::Attach{.mounts = {{.type = "ext4",
                                                  .source = {},
                                                  .serial = kRootDisk,
                                                  .target = std::string(kBundle) + "/rootfs",
                                                  .options = {}}},
                                      .wait_ms = 60'000});
    why_ = attached ? "" : attached.error().message + guest_->Words();
  }

  static void TearDownTestSuite() { guest_.reset(); }

  void SetUp() override {
    if (const TestImage& image = TestImage::Get(); !image.why_not.empty()) {
      GTEST_SKIP() << image.why_not;
    }
    ASSERT_EQ(why_, "");
  }

  void TearDown() override {
    if (HasFailure() && guest_) {
      std::fprintf(stderr, "%s\n", guest_->Words().c_str());
    }
  }

  struct Made {
    std::string id;
    UniqueFd out;
  };

  static Made Run(const Shape& shape) {
    static int count = 0;
    Made made{.id = Format("c{}", ++count), .out = {}};
    protocol::Streams streams;
    (shape.terminal ? streams.terminal : streams.output) = guest_->Token();
    const auto created = guest_->Call(protocol::CreateContainer{
        .container = made.id, .bundle = kBundle, .spec_json = SpecOf(shape), .streams = streams});
    EXPECT_TRUE(created) << created.error().message;
    auto out = guest_->Stream(shape.terminal ? streams.terminal : streams.output);
    EXPECT_TRUE(out) << out.error().message;
    if (out) {
      made.out = std::move(*out);
    }
    const auto started = guest_->Call(protocol::Start{.container = made.id, .exec = ""});
    EXPECT_TRUE(started) << started.error().message;
    return made;
  }

  static void Delete(const Made& made) {
    const auto gone = guest_->Call(protocol::Delete{.container = made.id, .exec = ""});
    EXPECT_TRUE(gone) << gone.error().message;
  }

  static std::unique_ptr<RealGuest> guest_;
  static std::string why_;
};

std::unique_ptr<RealGuest> AgentInGuest::guest_;
std::string AgentInGuest::why_;

TEST_F(AgentInGuest, SaysHello) {
  const protocol::Hello& hello = guest_->client().hello();
  EXPECT_THAT(hello.agent, testing::StartsWith("gantry-agent 0."));
  EXPECT_THAT(hello.kernel, HasSubstr("cloud"));
  EXPECT_EQ(hello.boot_id, "") << "it is chosen with the entropy of the host";
  std::printf("hello after %lld ms, %.2f s after the kernel's start\n",
              static_cast<long long>(guest_->boot_time().count()),
              static_cast<double>(hello.since_boot_ns) / 1e9);
}

TEST_F(AgentInGuest, IsSetUp) {
  protocol::SetUp request;
  request.hostname = "pod-name";
  request.clock = protocol::Clock{.realtime_ns = 1'900'000'000'000'000'000, .step = true};
  request.entropy = std::string(64, 'e');
  request.sysctls = {{.name = "net.ipv4.ip_unprivileged_port_start", .value = "80"}};
  request.files = {
      {.path = "/run/gantry/resolv.conf", .content = "nameserver 1.2.3.4\n", .mode = 0}};
  const auto done = guest_->Call(request);
  ASSERT_TRUE(done) << done.error().message;
  const Made made =
      Run({.script = "hostname; date +%Y; cat /proc/sys/net/ipv4/ip_unprivileged_port_start; ip "
                     "addr show lo"});
  EXPECT_THAT(ReadStream(made.out),
              testing::AllOf(HasSubstr("pod-name\n2030\n80\n"), HasSubstr("127.0.0.1/8")));
  Delete(made);
  protocol::SetUp missing;
  missing.interfaces = {{.mac = "nobody", .name = "eth0", .mtu = 0, .addresses = {}}};
  const auto waited = guest_->Call(missing);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(waited.error().message, HasSubstr("set up interface 'eth0'")) << "who waited?";
}

// K10, K11: both families, default routes with and without a gateway, one that is on no link's own
// net, and neighbours that nobody has to be asked for.
TEST_F(AgentInGuest, HasTheNetworkThatTheHostSays) {
  if (!guest_->has_nic()) {
    GTEST_SKIP() << "no tap can be made here";
  }
  const std::string mac("\x02\0\0\0\0\x07", 6);
  const std::string gateway("\xa9\xfe\x01\x01", 4);
  const std::string v6 = std::string("\xfd\x01", 2) + std::string(13, '\0') + "\x02";
  protocol::SetUp request;
  request.interfaces = {{.mac = mac,
                         .name = "eth0",
                         .mtu = 1420,
                         .addresses = {{.ip = std::string("\x0a\x01\0\x02", 4), .prefix = 32},
                                       {.ip = v6, .prefix = 64}}}};
  protocol::Route by_gateway{.interface = "eth0", .destination = std::string(4, '\0')};
  by_gateway.gateway = gateway;
  protocol::Route on_link{.interface = "eth0", .destination = gateway, .prefix = 32};
  protocol::Route v6_default{.interface = "eth0", .destination = std::string(16, '\0')};
  request.routes = {by_gateway, on_link, v6_default};
  request.neighbours = {{.interface = "eth0", .ip = gateway, .mac = std::string(6, '\xee')}};
  for (int again = 0; again < 2; ++again) {
    const auto done = guest_->Call(request);
    ASSERT_TRUE(done) << done.error().message;
  }
  const Made made =
      Run({.script = "ip addr show eth0; ip route; ip -6 route; ip neigh; cat /proc/net/if_inet6"});
  const std::string text = ReadStream(made.out);
  EXPECT_THAT(text, HasSubstr("mtu 1420"));
  EXPECT_THAT(text, HasSubstr("inet 10.1.0.2/32"));
  EXPECT_THAT(text, HasSubstr("inet6 fd01::2/64 scope global"));
  EXPECT_THAT(text, HasSubstr("default via 169.254.1.1 dev eth0"));
  EXPECT_THAT(text, HasSubstr("169.254.1.1 dev eth0 scope link"));
  EXPECT_THAT(text, HasSubstr("default dev eth0"));
  EXPECT_THAT(text, HasSubstr("169.254.1.1 dev eth0 lladdr ee:ee:ee:ee:ee:ee"));
  Delete(made);
}

TEST_F(AgentInGuest, RunsContainersAndExecs) {
  const Made made = Run({.script = "echo up; sleep 1000"});
  EXPECT_EQ(ReadUntil(made.out, "up"), "up\n");
  protocol::Streams streams;
  streams.output = guest_->Token();
  const auto exec = guest_->Call(protocol::CreateExec{
      .container = made.id,
      .exec = "e",
      .process_json = ProcessOf({.script = "cat /proc/1/cmdline /proc/self/cgroup; exit 9"}),
      .streams = streams});
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE(guest_->Call(protocol::Start{.container = made.id, .exec = "e"}));
  EXPECT_THAT(ReadStream(*guest_->Stream(streams.output)), HasSubstr("sleep"));
  EXPECT_EQ(guest_->WaitForExit(made.id, "e"), 9U);
  ASSERT_TRUE(guest_->Call(
      protocol::Signal{.container = made.id, .exec = "", .signal = SIGKILL, .all = true}));
  EXPECT_EQ(guest_->WaitForExit(made.id), 128U + SIGKILL);
  Delete(made);
}

TEST_F(AgentInGuest, GivesATerminal) {
  const Made made =
      Run({.script = "read line; stty size; echo got $line; exit 3", .terminal = true});
  ASSERT_TRUE(
      guest_->Call(protocol::Resize{.container = made.id, .exec = "", .width = 80, .height = 24}));
  WriteStream(made.out, "word\n");
  EXPECT_THAT(ReadStream(made.out), HasSubstr("24 80\r\ngot word\r\n"));
  EXPECT_EQ(guest_->WaitForExit(made.id), 3U);
  Delete(made);
}

TEST_F(AgentInGuest, CarriesALotOfOutputWhole) {
  const Made made = Run({.script = "head -c 4000000 /dev/zero"});
  EXPECT_EQ(ReadStream(made.out).size(), 4'000'000U);
  EXPECT_EQ(guest_->WaitForExit(made.id), 0U);
  Delete(made);
}

TEST_F(AgentInGuest, TellsOfMemoryBeforeTheEnd) {
  const Made made =
      Run({.script = "exec tail /dev/zero", .resources = R"({"memory": {"limit": 16777216}})"});
  EXPECT_EQ(guest_->WaitForExit(made.id), 128U + SIGKILL);
  EXPECT_GE(guest_->OomKills(made.id), 1U) << "and it was told before";
  Delete(made);
}

TEST_F(AgentInGuest, CountsStopsAndLimits) {
  const Made made =
      Run({.script = "i=0; while :; do i=$((i+1)); [ $((i % 500)) = 0 ] && echo $i; done",
           .resources = R"({"memory": {"limit": 67108864}, "pids": {"limit": 33}})"});
  ReadUntil(made.out, "2000");
  ASSERT_TRUE(guest_->Call(protocol::Pause{.container = made.id}));
  const auto stats = guest_->Call(protocol::Stats{.container = made.id});
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_GT(stats->cpu_usage_ns, 0U);
  EXPECT_EQ(stats->memory_limit_bytes, 67108864U);
  EXPECT_EQ(stats->pids_limit, 33U);
  EXPECT_EQ(stats->pids, 1U);
  ASSERT_TRUE(guest_->Call(protocol::Resume{.container = made.id}));
  ASSERT_TRUE(guest_->Call(
      protocol::Update{.container = made.id, .resources_json = R"({"pids": {"limit": 44}})"}));
  EXPECT_EQ(guest_->Call(protocol::Stats{.container = made.id})->pids_limit, 44U);
  const auto pids = guest_->Call(protocol::Pids{.container = made.id});
  ASSERT_TRUE(pids);
  EXPECT_EQ(pids->pids.size(), 1U);
  Delete(made);
}

TEST_F(AgentInGuest, KeepsContainersFromTheMachinesDevices) {
  const std::string script =
      "set -- $(grep vda /proc/partitions); rm -f /tmp/disk; mknod /tmp/disk b $1 $2 && "
      "head -c 1 /tmp/disk >/dev/null && echo read || echo refused; echo x >/dev/null && echo end";
  const Made kept = Run({.script = script});
  EXPECT_THAT(ReadStream(kept.out), HasSubstr("refused\nend\n"));
  Delete(kept);
  const Made let = Run({.script = script, .resources = R"({"devices": [{"allow": true}]})"});
  EXPECT_THAT(ReadStream(let.out), HasSubstr("read\nend\n"));
  Delete(let);
}

TEST_F(AgentInGuest, SwitchesCpusOn) {
  const auto online = guest_->Call(protocol::Online{.cpus = 1, .wait_ms = 0});
  ASSERT_TRUE(online) << online.error().message;
  EXPECT_EQ(online->cpus, 1U);
  EXPECT_GT(online->memory_bytes, uint64_t{100} << 20);
  EXPECT_EQ(guest_->Call(protocol::Online{.cpus = 9, .wait_ms = 1}).error().code,
            Code::kDeadlineExceeded);
}

uint64_t NumberBehind(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  return at == text.npos ? 0 : std::stoull(text.substr(at + word.size()));
}

// What the agent holds alone, and what more for each container that does nothing. Most of what is
// resident is its file, of which the kernel maps 64 KiB around whatever is touched.
TEST_F(AgentInGuest, IsSmall) {
  const Shape look{.script = "cat /proc/1/status", .namespaces = R"([{"type": "mount"}])"};
  const auto rss = [&](const char* when) {
    const Made made = Run(look);
    const std::string text = ReadStream(made.out);
    Delete(made);
    std::printf("%s: VmRSS %lu kB, RssAnon %lu kB\n", when, NumberBehind(text, "VmRSS:"),
                NumberBehind(text, "RssAnon:"));
    EXPECT_LE(NumberBehind(text, "RssAnon:"), 512U) << when;
    return NumberBehind(text, "VmRSS:");
  };
  const uint64_t alone = rss("agent");
  EXPECT_GT(alone, 0U);
  EXPECT_LE(alone, 2048U) << "the agent, in kB";
  std::vector<Made> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(Run({.script = "exec sleep 1000"}));
  }
  const uint64_t with = rss("agent with 20 idle containers");
  EXPECT_LE((with - std::min(with, alone)) / 20, 120U) << "for a container, in kB";
  for (const Made& made : idle) {
    Delete(made);
  }
}

TEST(AgentShutdown, EndsTheMachine) {
  if (const TestImage& image = TestImage::Get(); !image.why_not.empty()) {
    GTEST_SKIP() << image.why_not;
  }
  auto booted = RealGuest::Boot();
  ASSERT_TRUE(booted) << booted.error().message;
  RealGuest& guest = **booted;
  const auto down = guest.Call(protocol::Shutdown{});
  EXPECT_TRUE(down) << down.error().message;
  EXPECT_EQ(guest.AwaitEnd().cause, EndCause::kGuestShutdown) << guest.Words();
}

}  // namespace
}  // namespace gantry::vmm
