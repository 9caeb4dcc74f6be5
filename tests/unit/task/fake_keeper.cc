// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/task/fake_keeper.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/toolkit/process/process_id.h>

#include "core/link/messages.h"
#include "core/os/fifo.h"

namespace gantry::test {

UniqueFd FakeKeeper::Connect(async::Loop& loop) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  channel_ = std::make_unique<link::Channel>(
      loop, UniqueFd(ends[0]), [this](link::Message message) { OnMessage(std::move(message)); },
      [](const Error&) {});
  return UniqueFd(ends[1]);
}

uint64_t FakeKeeper::Announce(const std::string& id, const std::string& bundle,
                              const std::string& group) {
  link::InstanceAdded added;
  added.number = next_instance_++;
  added.announce.id = id;
  added.announce.ns = "default";
  added.announce.bundle = bundle;
  added.announce.group = group;
  added.announce.grpc_address = "/c.sock";
  added.announce.ttrpc_address = "/nowhere/c.sock.ttrpc";
  added.address = AddressOf(group.empty() ? id : group);
  instances[added.number] = added;
  if (channel_) {
    Tell(added);
  }
  return added.number;
}

void FakeKeeper::RemoveInstance(uint64_t number, bool with_group) {
  instances.erase(number);
  Tell(link::InstanceRemoved{number, with_group});
}

ProcessId FakeKeeper::AddOrphan(int32_t pid, uint64_t start_time) {
  start_times_[pid] = start_time;
  return {pid, start_time};
}

void FakeKeeper::End(ProcessId process, int wait_status) {
  link::Exit exit;
  exit.pid = process.pid;
  exit.start_time = process.start_time;
  exit.wait_status = wait_status;
  exit.exited_at_ns = 1'700'000'000'000'000'001;
  exits[process] = exit;
  if (channel_) {
    Tell(exit);
  }
}

void FakeKeeper::AskToDelete(uint64_t tag, uint64_t instance) {
  Tell(link::DeleteCall{tag, instance});
}

void FakeKeeper::SendSnapshot() {
  link::Welcome welcome;
  welcome.version = link::kProtocolVersion;
  welcome.hears_recovery = !of_before;
  welcome.confines = !of_before;
  welcome.fills_roots = !of_before && !leaves_roots_empty;
  Tell(welcome);
  for (const auto& [number, instance] : instances) {
    Tell(instance);
  }
  link::StoredNames names;
  for (const auto& [name, fd] : stored) {
    names.names.push_back(name);
  }
  Tell(names);
  for (const auto& [name, process] : named) {
    Tell(link::NamedSpawn{name, process.pid, process.start_time});
  }
  if (!watched.empty()) {
    Tell(link::Watched{watched});
  }
  if (!of_before && !ended_names.empty()) {
    Tell(link::EndedNames{ended_names});
  }
  for (const auto& [process, exit] : exits) {
    Tell(exit);
  }
  Tell(link::SnapshotEnd{});
}

void FakeKeeper::OnMessage(link::Message message) {
  if (std::ranges::find(silent, message.type) != silent.end()) {
    return;
  }
  if (message.type == link::Type::kPut) {
    return OnPut(message);
  }
  OnAsked(message);
}

void FakeKeeper::OnAsked(const link::Message& message) {
  switch (message.type) {
    case link::Type::kHello:
      hello = *message.As<link::Hello>();
      return SendSnapshot();
    case link::Type::kRecovering:
      recovering.push_back(*message.As<link::Recovering>());
      return;
    case link::Type::kPong:
      pongs.push_back(message.As<link::Pong>()->number);
      return;
    case link::Type::kSpawn:
      return OnSpawn(*message.As<link::Spawn>());
    case link::Type::kAdopt:
      return OnAdopt(*message.As<link::Adopt>());
    case link::Type::kTake:
      return OnTake(*message.As<link::Take>());
    case link::Type::kAddMember:
      return OnAddMember(*message.As<link::AddMember>());
    case link::Type::kDrop:
      stored.erase(message.As<link::Drop>()->name);
      return;
    case link::Type::kExitAck: {
      const auto ack = message.As<link::ExitAck>();
      acknowledged.push_back({ack->pid, ack->start_time});
      OnAcknowledged(acknowledged.back());
      return;
    }
    case link::Type::kForgetEnded:
      std::erase_if(ended_names,
                    [prefix = message.As<link::ForgetEnded>()->prefix](const link::EndedName& one) {
                      return one.name.starts_with(prefix);
                    });
      return;
    case link::Type::kProtect: {
      const auto protect = message.As<link::Protect>();
      last_resorts[protect->instance] = protect->last_resort;
      return;
    }
    case link::Type::kForget: {
      const auto forget = message.As<link::Forget>();
      forgotten.push_back(*forget);
      link::InstanceAdded& instance = instances[forget->instance];
      instance.forgotten = true;
      instance.pid = forget->pid;
      instance.status = forget->status;
      instance.exited_at_ns = forget->exited_at_ns;
      return;
    }
    case link::Type::kDeleteDone:
      deleted.push_back(*message.As<link::DeleteDone>());
      return;
    default:
      ADD_FAILURE() << "the engine sent type " << static_cast<int>(message.type);
  }
}

template <class Answer>
bool FakeKeeper::Refused(link::Type type, Answer& answer) {
  const auto found = fail_next.find(type);
  if (found == fail_next.end()) {
    return false;
  }
  answer.code = static_cast<int32_t>(found->second.code);
  answer.message = found->second.message;
  fail_next.erase(found);
  Tell(answer);
  return true;
}

void FakeKeeper::OnSpawn(link::Spawn spawn) {
  link::Spawned answer;
  answer.tag = spawn.tag;
  if (Refused(link::Type::kSpawn, answer)) {
    return;
  }
  answer.pid = next_pid_++;
  answer.start_time = 5;
  if (!spawn.name.empty()) {
    named[spawn.name] = {answer.pid, answer.start_time};
  }
  spawns.push_back(std::move(spawn));
  if (when_spawned) {
    when_spawned();
  }
  Tell(answer);
}

void FakeKeeper::OnAcknowledged(const ProcessId& process) {
  const auto exit = exits.extract(process);
  std::erase_if(named, [&](const auto& one) {
    if (one.second == process && exit) {
      const link::Exit& end = exit.mapped();
      ended_names.push_back(
          {one.first, end.pid, end.start_time, end.wait_status, end.exited_at_ns});
    }
    return one.second == process;
  });
}

void FakeKeeper::OnAdopt(const link::Adopt& adopt) {
  link::Adopted answer;
  answer.tag = adopt.tag;
  if (Refused(link::Type::kAdopt, answer)) {
    return;
  }
  const auto found = start_times_.find(adopt.pid);
  if (found == start_times_.end() || (adopt.start_time != 0 && adopt.start_time != found->second)) {
    answer.code = static_cast<int32_t>(Code::kNotFound);
    answer.message = "no such process";
  } else {
    answer.start_time = found->second;
    if (!adopt.name.empty()) {
      named[adopt.name] = {adopt.pid, found->second};
    }
  }
  Tell(answer);
}

void FakeKeeper::OnPut(link::Message& message) {
  const auto put = message.As<link::Put>();
  link::PutDone answer;
  answer.tag = put->tag;
  if (Refused(link::Type::kPut, answer)) {
    return;
  }
  for (size_t i = 0; i < put->names.size(); ++i) {
    const auto as = link::StoreAs{put->as.at(i)};
    UniqueFd& kept = stored[put->names[i]];
    kept = std::move(message.fds.at(i));
    if (as != link::StoreAs::kItself) {
      kept = (as == link::StoreAs::kReadEnd ? os::OpenPipeEnd(kept.get(), os::PipeEnd::kRead)
                                            : os::OpenWriteEnd(kept.get()))
                 .value();
    }
  }
  Tell(answer);
}

void FakeKeeper::OnTake(const link::Take& take) {
  link::Taken answer;
  answer.tag = take.tag;
  if (Refused(link::Type::kTake, answer)) {
    return;
  }
  std::vector<UniqueFd> fds;
  const auto add = [&](const std::string& name) {
    const auto found = stored.find(name);
    if (found != stored.end() && found->second) {
      fds.push_back(*found->second.Duplicate());
      answer.names.push_back(name);
    }
    return found != stored.end();
  };
  if (!add(take.name)) {
    answer.code = static_cast<int32_t>(Code::kNotFound);
    answer.message = "not stored";
  }
  if (of_before) {
    answer.names.clear();
  } else {
    std::ranges::for_each(take.others, add);
  }
  IgnoreError(channel_->Send(answer, std::move(fds)), "a test that ends the link asks for it");
}

void FakeKeeper::OnAddMember(const link::AddMember& add) {
  link::MemberAdded answer;
  answer.tag = add.tag;
  if (Refused(link::Type::kAddMember, answer)) {
    return;
  }
  for (const auto& [number, instance] : instances) {
    if (instance.address == add.address) {
      answer.instance = instance;
    }
  }
  if (answer.instance.announce.group.empty()) {
    answer.instance.announce.group = answer.instance.announce.id;
  }
  answer.instance.number = next_instance_++;
  answer.instance.announce.id = add.id;
  answer.instance.announce.bundle = add.bundle;
  answer.instance.forgotten = false;
  instances[answer.instance.number] = answer.instance;
  Tell(answer);
}

}  // namespace gantry::test
