// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/container/pod_fixture.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <gantry/format.h>
#include <gantry/number.h>

namespace gantry::vmm {
namespace {

constexpr std::chrono::seconds kLong{60};

}  // namespace

Result<ContainerStorage> TestStorage::Add(const ContainerRequest& request,
                                          const oci::Spec& /*spec*/) {
  if (refuse) {
    return std::unexpected(*refuse);
  }
  ContainerStorage files;
  files.bundle = request.bundle;
  files.spec_json = request.spec_json;
  files.disks = disks;
  files.attach.mounts = mounts;
  std::vector<std::string>& serials = added[request.id.str()];
  for (const Disk& disk : disks) {
    serials.push_back(disk.serial);
  }
  return files;
}

protocol::Detach TestStorage::DetachOf(const ContainerId& id) {
  protocol::Detach detach;
  if (added.contains(id.str())) {
    for (const protocol::GuestMount& mount : mounts) {
      detach.targets.push_back(mount.target);
    }
  }
  return detach;
}

std::vector<std::string> TestStorage::DisksOf(const ContainerId& id) const {
  const auto found = added.find(id.str());
  return found == added.end() ? std::vector<std::string>() : found->second;
}

Status TestStorage::Remove(const ContainerId& id) {
  added.erase(id.str());
  return {};
}

void TestMachine::Listen(PodMachineEvents events) {
  events_ = std::move(events);
  AgentEvents heard;
  heard.exited = events_.exited;
  heard.out_of_memory = events_.out_of_memory;
  vm_.host->Hear(std::move(heard));
}

Status TestMachine::Start(PodMachineRequest request, PodMachineEvents events,
                          Deadline /*deadline*/) {
  if (vm_.refuse_start) {
    return std::unexpected(*vm_.refuse_start);
  }
  vm_.ended.reset();
  vm_.started = std::move(request);
  Listen(std::move(events));
  return {};
}

Status TestMachine::Recover(const PodMachineRequest& request, const std::string& saved,
                            PodMachineEvents events, Deadline /*deadline*/) {
  vm_.recovered = request;
  if (saved != Save() || !vm_.started) {
    vm_.ended = Error{Code::kUnavailable, 0, "there is none", {}};
    return Fail(Code::kNotFound, "there is no such machine");
  }
  Listen(std::move(events));
  return {};
}

Status TestMachine::AddDisk(const Disk& disk, Deadline /*deadline*/) {
  vm_.disks.push_back(disk.serial);
  return {};
}

Status TestMachine::RemoveDisk(const std::string& serial, Deadline /*deadline*/) {
  std::erase(vm_.disks, serial);
  return {};
}

Status TestMachine::MakeRoom(const std::string& container, const Limits& limits,
                             Deadline /*deadline*/) {
  if (vm_.refuse_room) {
    return std::unexpected(*vm_.refuse_room);
  }
  vm_.rooms[container] = limits;
  return {};
}

void TestMachine::KnowRoom(const std::string& container, const Limits& limits) {
  vm_.rooms[container] = limits;
}

Status TestMachine::GiveRoomBack(const std::string& container, Deadline /*deadline*/) {
  vm_.rooms.erase(container);
  return {};
}

Status TestMachine::Shutdown(std::chrono::milliseconds /*limit*/) {
  ++vm_.shutdowns;
  vm_.started.reset();
  vm_.ended = Error{Code::kUnavailable, 0, "it was shut down", {}};
  return {};
}

Result<std::string> TestMachine::Ask(protocol::Kind kind, std::string body, Deadline deadline) {
  if (vm_.ended) {
    return Fail(Code::kUnavailable, "the machine has ended");
  }
  if (vm_.silent) {
    ++vm_.waited;
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    never.wait_until(lock, deadline, [] { return false; });
    return Fail(Code::kDeadlineExceeded, "the agent has not answered");
  }
  auto answer = vm_.host->client().Ask(kind, std::move(body), deadline);
  if (!answer || kind != protocol::Kind::kCreateContainer || vm_.warnings.empty()) {
    return answer;
  }
  GANTRY_TRY(auto made, DecodeProto<protocol::CreateAnswer>(*answer));
  made.warnings = vm_.warnings;
  return EncodeProto(made);
}

Status TestMachine::PostBytes(protocol::Kind kind, std::string body,
                              std::function<void(Result<std::string>)> answered) {
  return vm_.silent ? Status()
                    : vm_.host->client().Post(kind, std::move(body), std::move(answered));
}

void TestMachine::End(const std::string& why) {
  vm_.ended = Error{Code::kUnavailable, 0, why, {}};
  events_.ended(*vm_.ended);
}

TestContext::TestContext(const std::string& id) : fake(id) {
  fake.events.on_word = [this](const std::string& word) {
    const std::lock_guard lock(mutex_);
    words_.push_back(word);
    told_.notify_all();
  };
}

bool TestContext::WaitFor(const std::string& word) {
  std::unique_lock lock(mutex_);
  return told_.wait_for(lock, kLong, [&] { return std::ranges::contains(words_, word); });
}

uint32_t TestContext::WaitForExit() {
  constexpr std::string_view kExited = "exited ";
  std::unique_lock lock(mutex_);
  const auto is_exit = [&](const std::string& word) { return word.starts_with(kExited); };
  if (!told_.wait_for(lock, kLong, [&] { return std::ranges::any_of(words_, is_exit); })) {
    ADD_FAILURE() << "no end was told";
    return 999;
  }
  const auto word = std::ranges::find_if(words_, is_exit);
  return static_cast<uint32_t>(
      ParseNumber(std::string_view(*word).substr(kExited.size())).value_or(999));
}

void TestExecContext::Exited(ExitStatus status) {
  const std::lock_guard lock(mutex_);
  if (!exit_) {
    exit_ = status.status;
  }
  told_.notify_all();
}

uint32_t TestExecContext::WaitForExit() {
  std::unique_lock lock(mutex_);
  if (!told_.wait_for(lock, kLong, [&] { return exit_.has_value(); })) {
    ADD_FAILURE() << "no end was told";
    return 999;
  }
  return *exit_;
}

container::Config InPod(container::Config config) {
  config.namespaces =
      R"([{"type": "pid"}, {"type": "mount"}, {"type": "uts", "path": "/proc/1/ns/uts"},
                          {"type": "ipc"}, {"type": "network", "path": "/run/netns/of-the-pod"}])";
  return config;
}

void PodTest::SetUp() {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "makes containers, which needs root";
  }
  vm_.host = std::make_unique<Host>();
  const Status connected = vm_.host->Connect();
  ASSERT_TRUE(connected) << connected.error().message;
  vm_.vmm = RunShell("exec sleep 1000").value();
  sandbox_.time_left = kLong;
  auto machine = std::make_unique<TestMachine>(vm_);
  machine_ = machine.get();
  pod_ = std::make_shared<Pod>(SandboxId::Parse("pod").value(), sandbox_, std::move(machine));
  const Status booted = pod_->Boot("", {});
  ASSERT_TRUE(booted) << booted.error().message;
}

void PodTest::TearDown() { pod_.reset(); }

ContainerRequest PodTest::RequestOf(const container::Config& config, bool terminal) {
  ContainerRequest request;
  request.id = ContainerId::Parse(vm_.host->NewId()).value();
  request.bundle = bundle_.path();
  request.spec_json = container::Bundle::TextOf(InPod(config));
  request.rootfs = bundle_.InRoot("");
  request.terminal = terminal;
  return request;
}

ExecRequest PodTest::ExecOf(const std::string& id, const container::Config& config, bool terminal) {
  ExecRequest request;
  request.id = ExecId::Parse(id).value();
  request.process_json = container::Bundle::ProcessOf(config);
  request.terminal = terminal;
  return request;
}

std::unique_ptr<VmmContainer> PodTest::Create(const ContainerRequest& request,
                                              TestContext& context) {
  auto container = std::make_unique<VmmContainer>(request, context.fake, pod_, false);
  const Status created = container->Create(request, nullptr);
  EXPECT_TRUE(created) << created.error().message;
  return container;
}

std::unique_ptr<VmmContainer> PodTest::Run(const ContainerRequest& request, TestContext& context) {
  auto container = Create(request, context);
  const Status started = container->Start();
  EXPECT_TRUE(started) << started.error().message;
  return container;
}

void PodTest::RestartEngine() {
  vm_.host->Disconnect();
  pod_.reset();
  sandbox_.RestartEngine();
  const Status connected = vm_.host->Connect();
  ASSERT_TRUE(connected) << connected.error().message;
  auto machine = std::make_unique<TestMachine>(vm_);
  machine_ = machine.get();
  pod_ = std::make_shared<Pod>(SandboxId::Parse("pod").value(), sandbox_, std::move(machine));
  const Status recovered = pod_->Recover(sandbox_.blob, {});
  ASSERT_TRUE(recovered) << recovered.error().message;
}

std::vector<protocol::ContainerReport> PodTest::Listed() {
  const auto list = vm_.host->client().Call(protocol::List{}, Soon());
  EXPECT_TRUE(list);
  return list ? list->containers : std::vector<protocol::ContainerReport>();
}

}  // namespace gantry::vmm
