// SPDX-License-Identifier: Apache-2.0
//
// Calls of the Sandbox service that come at the wrong time: of pods that are not there, of one for
// the second time, in any order, and of one that is being used.
#include <sys/mount.h>

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/contract/harness/escapes.h"
#include "tests/contract/harness/interrupt.h"
#include "tests/contract/harness/pod_contract.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::AnyOf;

struct Method {
  const char* name;
  /// Of whatever pod has this id, on the socket of `pod`.
  std::function<Status(const PodBox& pod, const std::string& id)> call;
};

template <class Request, class Response>
Method MethodOf(const char* name) {
  return {name, [name](const PodBox& pod, const std::string& id) {
            return Plain(pod.client().Call<Response>(name, OfPod<Request>(id)));
          }};
}

const std::vector<Method>& Methods() {
  namespace s = sandbox_pb;
  static const std::vector<Method> all = {
      MethodOf<s::StartSandboxRequest, s::StartSandboxResponse>("StartSandbox"),
      MethodOf<s::PlatformRequest, s::PlatformResponse>("Platform"),
      MethodOf<s::StopSandboxRequest, s::StopSandboxResponse>("StopSandbox"),
      MethodOf<s::WaitSandboxRequest, s::WaitSandboxResponse>("WaitSandbox"),
      MethodOf<s::SandboxStatusRequest, s::SandboxStatusResponse>("SandboxStatus"),
      MethodOf<s::PingRequest, s::PingResponse>("PingSandbox"),
      MethodOf<s::SandboxMetricsRequest, s::SandboxMetricsResponse>("SandboxMetrics"),
      MethodOf<s::ShutdownSandboxRequest, s::ShutdownSandboxResponse>("ShutdownSandbox"),
  };
  return all;
}

class PodCall : public PodContract {};

INSTANTIATE_CONTRACT(PodCall);

TEST_P(PodCall, OfUnknownIdsIsNotFound) {
  const PodBox& pod = RunningPod();
  const PodBox& other = RunningPod("-other");
  std::vector<std::string> ids = Escapes();
  std::erase(ids, "\xff\xfe");  // It is no message.
  ids.insert(ids.end(), {"", "nobody", other.id()});
  for (const std::string& id : ids) {
    for (const Method& method : Methods()) {
      const Status answer = method.call(pod, id);
      EXPECT_CODE(answer, kNotFound) << method.name << " " << id.substr(0, 40);
      EXPECT_LT(MessageOf(answer).size(), 1000U);
    }
    sandbox_pb::CreateSandboxRequest request = pod.CreateRequest();
    request.set_sandbox_id(id);
    EXPECT_CODE(pod.client().Call<sandbox_pb::CreateSandboxResponse>("CreateSandbox", request),
                kInvalidArgument)
        << id.substr(0, 40);
  }
  EXPECT_EQ(Got(pod.GetStatus()).state(), "SANDBOX_READY");
  EXPECT_EQ(Got(other.GetStatus()).state(), "SANDBOX_READY");
}

TEST_P(PodCall, OfWhatIsShutDownIsNotFound) {
  const PodBox& pod = RunningPod();
  EXPECT_OK(pod.Shutdown());
  for (const Method& method : Methods()) {
    for (int twice = 0; twice < 2; ++twice) {
      if (method.name == std::string_view("ShutdownSandbox")) {
        EXPECT_OK(method.call(pod, pod.id()));
      } else {
        EXPECT_CODE(method.call(pod, pod.id()), kNotFound) << method.name;
      }
    }
  }
}

TEST_P(PodCall, TwiceIsAnsweredByItsState) {
  const PodBox& pod = AnnouncedPod();
  EXPECT_OK(pod.Create());
  EXPECT_CODE(pod.Create(), kAlreadyExists);
  EXPECT_OK(pod.Start());
  EXPECT_CODE(pod.Start(), kFailedPrecondition);
  EXPECT_CODE(pod.Create(), kAlreadyExists);
  EXPECT_OK(pod.Stop());
  EXPECT_OK(pod.Stop());
  EXPECT_CODE(pod.Start(), kFailedPrecondition);
  EXPECT_OK(pod.Wait());
  EXPECT_OK(pod.Wait());
  EXPECT_OK(pod.Shutdown());
  EXPECT_OK(pod.Shutdown());
}

// containerd that is killed before CreateSandbox asks for no more when it is back.
TEST_P(PodCall, StopsAndShutsDownWhatHasNoFilesAnyMore) {
  const PodBox& pod = RunningPod();
  for (const std::string& point : e2e::MountsBelow(pod.bundle())) {
    EXPECT_EQ(umount2(point.c_str(), MNT_DETACH), 0) << point;
  }
  for (const std::string& name : e2e::ListFolder(pod.bundle())) {
    std::filesystem::remove_all(pod.bundle() + "/" + name);
  }
  EXPECT_OK(pod.Stop());
  EXPECT_OK(pod.Stop());
  EXPECT_OK(pod.Shutdown());
  EXPECT_OK(pod.Shutdown());
}

TEST_P(PodCall, ShutsDownWhatWasNeverMade) {
  const PodBox& pod = AnnouncedPod();
  EXPECT_CODE(pod.GetStatus(), kNotFound);
  EXPECT_CODE(pod.Stop(), kNotFound);
  EXPECT_OK(pod.Shutdown());
  EXPECT_OK(pod.Create());
  EXPECT_OK(pod.Shutdown());
}

TEST_P(PodCall, InAnyOrderLeavesNothing) {
  // The same numbers each time.
  std::minstd_rand random(7);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp)
  const PodBox& pod = AnnouncedPod();
  for (int i = 0; i < 80; ++i) {
    const size_t choice = random() % (Methods().size() + 1);
    if (choice == Methods().size()) {
      IgnoreError(pod.Create(), "any answer");
      continue;
    }
    const Method& method = Methods().at(choice);
    if (std::string(method.name) != "WaitSandbox") {
      EXPECT_NE(CodeOf(method.call(pod, pod.id())), Code::kInternal) << method.name;
    }
  }
  IgnoreError(pod.Create(), "it may be there");
  EXPECT_OK(pod.Shutdown());
}

TEST_P(PodCall, RemovesAPodWhileAContainerIsMade) {
  AtEachMoment([this](size_t moment) {
    const std::string suffix = "-" + std::to_string(moment);
    const PodBox& pod = RunningPod(suffix);
    const Box& box = Member(pod, {}, suffix);
    BundleWatch watch(box.bundle());
    auto created = box.client().Begin<pb::CreateTaskResponse>("Create", box.CreateRequest());
    EXPECT_OK(created);
    const bool in_time = watch.WaitFor(moment, created->fd());
    EXPECT_OK(pod.Shutdown());
    const auto answer = created->Get();
    EXPECT_THAT(CodeOf(answer),
                AnyOf(Code::kOk, Code::kFailedPrecondition, Code::kUnavailable, Code::kNotFound))
        << MessageOf(answer);
    EXPECT_CODE(pod.GetStatus(), kNotFound);
    return in_time;
  });
}

}  // namespace
}  // namespace gantry::contract
