// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/task/task_test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <gantry/backend.h>
#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "core/events/journal.h"
#include "core/events/publisher.h"
#include "core/log/log.h"
#include "proto/containerd/events.pb.h"

#ifdef __SANITIZE_THREAD__
// The engines of `Graveyard` keep their workers; those that have been idle for
// long end, and nobody is there to join them.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_options() {
  return "report_thread_leaks=0";
}
#endif

namespace gantry::task {
namespace {

constexpr uint64_t kConnection = 1;

struct Name {
  std::string id;
  std::string exec;
};

Name Split(const std::string& name) {
  const size_t slash = name.find('/');
  return {name.substr(0, slash), slash == std::string::npos ? "" : name.substr(slash + 1)};
}

/// Engines that were killed. Their loops do not turn any more, and their workers
/// may wait for them for ever, so they are never destroyed.
std::vector<std::unique_ptr<TestEngine>>& Graveyard() {
  static auto* const graveyard = new std::vector<std::unique_ptr<TestEngine>>();
  return *graveyard;
}

std::unique_ptr<events::Outbox> OpenOutbox(UniqueFd journal) {
  auto outbox = events::Outbox::Open(std::move(journal));
  EXPECT_TRUE(outbox) << outbox.error().message;
  return std::move(*outbox);
}

std::string TextOf(const events::Event& event) {
  const std::string what = event.topic.substr(std::string("/tasks/").size());
  std::string text = what + " " + event.subject.container.str();
  if (what == "exit") {
    containerd::events::TaskExit exit;
    EXPECT_TRUE(exit.ParseFromString(event.payload));
    if (exit.id() != exit.container_id()) {
      text += "/" + exit.id();
    }
    text += Format(" {}", exit.exit_status());
  } else if (what == "exec-added") {
    containerd::events::TaskExecAdded added;
    EXPECT_TRUE(added.ParseFromString(event.payload));
    text += "/" + added.exec_id();
  } else if (what == "exec-started") {
    containerd::events::TaskExecStarted started;
    EXPECT_TRUE(started.ParseFromString(event.payload));
    text += "/" + started.exec_id();
  }
  return text;
}

}  // namespace

TestEngine::TestEngine(Surroundings around, test::FakeKeeper& keeper, UniqueFd journal)
    : around_(std::move(around)),
      link_(loop_, keeper.Connect(loop_), *this),
      processes_(loop_, link_),
      publishers_(loop_, OpenOutbox(std::move(journal))),
      tasks_(MakeParts()),
      dispatcher_(loop_, table_, [this](uint64_t, uint32_t stream, std::string response) {
        EXPECT_FALSE(answers.contains(stream)) << "answered twice";
        answers.emplace(stream, rpc::DecodeResponse(response));
      }) {
  EXPECT_TRUE(tasks_.Register(table_));
  EXPECT_TRUE(link_.SayHello({}, false));
}

Parts TestEngine::MakeParts() {
  return Parts{{loop_, pool_, link_, processes_, around_.cgroups},
               around_.config,
               *relay_,
               publishers_,
               counters_,
               recorder_,
               [this](std::string_view name) -> Result<BackendRef> {
                 if (!around_.backend_error.empty()) {
                   return Fail(Code::kFailedPrecondition, "{}", around_.backend_error);
                 }
                 return BackendRef{std::string(name), around_.backend.get()};
               },
               around_.config_error,
               around_.overdue_after};
}

std::vector<std::string> ReadEvents(int journal) {
  std::vector<std::string> texts;
  const auto size = FileSize(journal);
  const auto bytes = ReadAt(journal, 0, *size);
  auto copy = CreateMemfd("copy");
  EXPECT_TRUE(WriteAt(copy->get(), 0, *bytes));
  std::vector<events::Journal::Record> records;
  EXPECT_TRUE(events::Journal::Open(std::move(*copy), &records));
  for (const auto& record : records) {
    const auto event = events::DecodeEvent(record.body);
    texts.push_back(event ? TextOf(*event) : event.error().message);
  }
  return texts;
}

TaskTest::TaskTest()
    : around_{config::Defaults(),
              std::make_shared<test::FakeBackend>(),
              "",
              "",
              std::chrono::seconds(3),
              {}},
      backend_(*around_.backend) {
  log::SetSinkForTest([](std::string_view) {});
  dir_ = *os::TempDir::Create();
  journal_ = *CreateMemfd("events");
  around_.config.timeouts.stdio_drain = std::chrono::milliseconds(100);
  StartEngine();
}

TaskTest::~TaskTest() {
  backend_.EndAll();
  EXPECT_TRUE(Until([this] { return engine_->running() == 0; })) << "a call never ended";
  Settle();
  engine_->Retire();
  EXPECT_TRUE(Until([this] { return engine_->loop().timers() == 0; })) << "something waits on";
  Settle();
  keeper_.Hangup();
  engine_.reset();
  log::SetSinkForTest({});
}

void TaskTest::StartEngine() {
  engine_ = std::make_unique<TestEngine>(around_, keeper_, *journal_.Duplicate());
  ASSERT_TRUE(Until([this] { return engine_->up(); }));
}

void TaskTest::RestartEngine() {
  Turn();
  engine_->StopRelay();
  Graveyard().push_back(std::move(engine_));
  StartEngine();
}

std::string TaskTest::MakeBundle(const std::string& id, const std::string& annotations,
                                 bool private_pids) {
  const std::string bundle = dir_.path() + "/" + id;
  EXPECT_TRUE(os::MakeDirs(bundle + "/rootfs", 0755));
  const std::string spec = Format(
      R"({{"ociVersion":"1.2.0","process":{{"args":["/bin/true"],"cwd":"/"}},"root":{{"path":"rootfs"}},)"
      R"("annotations":{},"linux":{{"namespaces":[{}{{"type":"mount"}}]}}}})",
      annotations, private_pids ? R"({"type":"pid"},)" : "");
  EXPECT_TRUE(ReplaceFile(bundle + "/config.json", spec, 0644));
  return bundle;
}

std::string TaskTest::Announce(const std::string& id, const std::string& group) {
  const std::string bundle = MakeBundle(id);
  const uint64_t number = keeper_.Announce(id, bundle, group);
  socket_of_[id] = group.empty() ? id : group;
  EXPECT_TRUE(Until([&] { return engine_->tasks().instances().contains(number); }));
  return bundle;
}

uint32_t TaskTest::Send(const std::string& method, const google::protobuf::MessageLite& request,
                        const std::string& socket, bool replay) {
  // Both versions are served by the same code; half of the calls go to each.
  return SendTo(next_stream_ % 4 == 1 ? "containerd.task.v2.Task" : "containerd.task.v3.Task",
                method, request, socket, replay);
}

uint32_t TaskTest::SendSandbox(const std::string& method,
                               const google::protobuf::MessageLite& request,
                               const std::string& socket, bool replay) {
  return SendTo("containerd.runtime.sandbox.v1.Sandbox", method, request, socket, replay);
}

uint32_t TaskTest::SendTo(const std::string& service, const std::string& method,
                          const google::protobuf::MessageLite& request, const std::string& socket,
                          bool replay) {
  rpc::Request call;
  call.service = service;
  call.method = method;
  call.payload = request.SerializeAsString();
  call.timeout = callers_timeout_;
  rpc::IncomingRequest incoming;
  incoming.connection = kConnection;
  incoming.stream = next_stream_;
  call.metadata = callers_metadata_;
  incoming.bytes = rpc::EncodeRequest(call);
  incoming.ns = "default";
  const auto known = socket_of_.find(socket);
  incoming.address =
      test::FakeKeeper::AddressOf(known == socket_of_.end() ? socket : known->second);
  incoming.replay = replay;
  engine_->Dispatch(std::move(incoming));
  return std::exchange(next_stream_, next_stream_ + 2);
}

Result<std::string> TaskTest::Take(uint32_t stream) {
  if (!Until([&] { return Answered(stream); })) {
    ADD_FAILURE() << "no answer";
    return Fail(Code::kUnknown, "no answer");
  }
  return engine_->answers.at(stream);
}

pb::CreateTaskRequest TaskTest::CreateRequest(const std::string& id) {
  pb::CreateTaskRequest request;
  request.set_id(id);
  request.set_bundle(dir_.path() + "/" + id);
  return request;
}

Result<pb::CreateTaskResponse> TaskTest::Create(const std::string& id, const std::string& socket) {
  return Ask<pb::CreateTaskResponse>("Create", CreateRequest(id), socket.empty() ? id : socket);
}

uint32_t TaskTest::SendStart(const std::string& name) {
  pb::StartRequest request;
  request.set_id(Split(name).id);
  request.set_exec_id(Split(name).exec);
  return Send("Start", request, Split(name).id);
}

Result<pb::StartResponse> TaskTest::Start(const std::string& name, bool replay) {
  pb::StartRequest request;
  request.set_id(Split(name).id);
  request.set_exec_id(Split(name).exec);
  return Ask<pb::StartResponse>("Start", request, Split(name).id, replay);
}

Result<wire::Empty> TaskTest::Exec(const std::string& name, bool replay) {
  pb::ExecProcessRequest request;
  request.set_id(Split(name).id);
  request.set_exec_id(Split(name).exec);
  request.mutable_spec()->set_value(R"({"args":["/bin/true"],"cwd":"/"})");
  return Ask<wire::Empty>("Exec", request, Split(name).id, replay);
}

uint32_t TaskTest::SendDelete(const std::string& name) {
  pb::DeleteRequest request;
  request.set_id(Split(name).id);
  request.set_exec_id(Split(name).exec);
  return Send("Delete", request, Split(name).id);
}

Result<pb::DeleteResponse> TaskTest::Delete(const std::string& name, bool replay) {
  pb::DeleteRequest request;
  request.set_id(Split(name).id);
  request.set_exec_id(Split(name).exec);
  return Ask<pb::DeleteResponse>("Delete", request, Split(name).id, replay);
}

Result<pb::StateResponse> TaskTest::State(const std::string& name) {
  pb::StateRequest request;
  request.set_id(Split(name).id);
  request.set_exec_id(Split(name).exec);
  return Ask<pb::StateResponse>("State", request, Split(name).id);
}

Result<wire::Empty> TaskTest::Kill(const std::string& name, uint32_t signal, bool all) {
  pb::KillRequest request;
  request.set_id(Split(name).id);
  request.set_exec_id(Split(name).exec);
  request.set_signal(signal);
  request.set_all(all);
  return Ask<wire::Empty>("Kill", request, Split(name).id);
}

Result<pb::PidsResponse> TaskTest::Pids(const std::string& id) {
  pb::PidsRequest request;
  request.set_id(id);
  return Ask<pb::PidsResponse>("Pids", request, id);
}

uint32_t TaskTest::SendWait(const std::string& name) {
  pb::WaitRequest request;
  request.set_id(Split(name).id);
  request.set_exec_id(Split(name).exec);
  return Send("Wait", request, Split(name).id);
}

void TaskTest::Run(const std::string& id, const std::string& group) {
  Announce(id, group);
  const auto created = Create(id);
  ASSERT_TRUE(created) << created.error().message;
  const auto started = Start(id);
  ASSERT_TRUE(started) << started.error().message;
}

void TaskTest::RunExec(const std::string& name) {
  const auto added = Exec(name);
  ASSERT_TRUE(added) << added.error().message;
  const auto started = Start(name);
  ASSERT_TRUE(started) << started.error().message;
}

void TaskTest::End(const std::string& name, uint32_t status) {
  const uint32_t wait = SendWait(name);
  ASSERT_TRUE(backend_.End(name, status)) << name;
  ASSERT_TRUE(Take(wait));
}

void TaskTest::Settle(size_t held) {
  EXPECT_TRUE(Until([&] {
    return test::Settle(engine_->loop(), engine_->pool()) &&
           engine_->tasks().backend_calls().under_way() == held;
  }));
}

store::Record TaskTest::RecordOf(const std::string& id) {
  auto record = store::Read(dir_.path() + "/" + id);
  return record ? std::move(*record) : store::Record();
}

}  // namespace gantry::task
