// SPDX-License-Identifier: Apache-2.0
//
// Spans on their way to a collector: from containerd's calls through engine and gantry-grpc to a
// real gRPC server. Whatever ends on the way, containers and calls do not notice.
#include <signal.h>

#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>

#include "core/link/span_api.h"
#include "core/rpc/blocking_client.h"
#include "proto/gantry/spans.pb.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/setup.h"
#include "tests/harness/collector_double.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

constexpr char kTraceId[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParentId[] = "00f067aa0ba902b7";

std::string Hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[static_cast<uint8_t>(c) & 0xf];
  }
  return text;
}

class TracingContract : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    if (!Exists(TheSetup().programs + "/gantry-grpc")) {
      GTEST_SKIP() << "gantry-grpc is not built";
    }
  }

  void Start(const std::string& sections) {
    NodeAdditions more;
    more.sections = sections;
    ASSERT_EQ(node_.Start(more), "");
  }

  std::string socket() const { return node_.root() + "/otel.sock"; }

  /// Traces that begin here are kept as `sample` says.
  void StartTracing(const std::string& sample) {
    Start("tracing: {endpoint: 'unix://" + socket() + "', sample: " + sample + "}\n");
  }

  pid_t GrpcProgram() const {
    for (const e2e::HostProcess& process :
         e2e::ProcessesWithEnv("GANTRY_RUN_DIR=" + node_.run_dir())) {
      if (process.name == "gantry-grpc") {
        return process.pid;
      }
    }
    return 0;
  }

  Box MakeBox(const std::string& id) {
    return Box(node_, id, "runc", BoxOptions{.args = {"sleep", "1000"}});
  }

  /// A call as containerd makes it that traces its own.
  template <class Request>
  static Status TracedCall(const Box& box, const std::string& method, const Request& request,
                           const std::string& trace, bool sampled = true) {
    GANTRY_TRY(rpc::BlockingClient client, rpc::BlockingClient::Connect(box.client().path()));
    const std::string traceparent = "00-" + trace + "-" + kParentId + (sampled ? "-01" : "-00");
    return Plain(client.Call(kService, method, request.SerializeAsString(), kCallLimit,
                             {{"traceparent", traceparent}, {"tracestate", "vendor=value"}}));
  }

  static pb::StartRequest StartRequest(const std::string& id) {
    pb::StartRequest request;
    request.set_id(id);
    return request;
  }

  /// The span of that name and container, once the collector has it.
  std::optional<test::OtlpSpan> Comes(const std::string& name, const std::string& id) const {
    std::optional<test::OtlpSpan> found;
    e2e::Eventually([&] {
      for (const test::OtlpSpan& span : collector_.spans()) {
        if (span.name() == name && test::TextOf(span, "container.id") == id) {
          found = span;
        }
      }
      return found.has_value();
    });
    return found;
  }

  Node node_;
  test::CollectorDouble collector_;
};

TEST_F(TracingContract, PutsStepsIntoTheTraceOfWhoCalls) {
  StartTracing("0");
  ASSERT_TRUE(collector_.Listen(socket()));
  Box other = MakeBox("unsampled");
  ASSERT_TRUE(other.Announce());
  const std::string unkept(32, 'a');
  EXPECT_OK(TracedCall(other, "Create", other.CreateRequest(), unkept, false));
  Box box = MakeBox("one");
  ASSERT_TRUE(box.Announce());
  EXPECT_OK(TracedCall(box, "Create", box.CreateRequest(), kTraceId));
  EXPECT_OK(TracedCall(box, "Start", StartRequest("one"), kTraceId));

  const auto start = Comes("Start", "one");
  const auto create = Comes("Create", "one");
  const auto backend = Comes("backend create", "one");
  const auto event = Comes("event /tasks/start", "one");
  ASSERT_TRUE(start && create && backend && event) << node_.Log();
  EXPECT_EQ(Hex(create->trace_id()), kTraceId);
  EXPECT_EQ(Hex(create->parent_span_id()), kParentId);
  EXPECT_EQ(create->trace_state(), "vendor=value");
  EXPECT_EQ(test::TextOf(*create, "containerd.namespace"), kNamespace);
  EXPECT_EQ(create->kind(), test::OtlpSpan::SPAN_KIND_SERVER);
  EXPECT_LE(create->start_time_unix_nano(), create->end_time_unix_nano());
  EXPECT_EQ(backend->parent_span_id(), create->span_id());
  EXPECT_EQ(Hex(backend->trace_id()), kTraceId);
  EXPECT_EQ(event->parent_span_id(), start->span_id());
  for (const test::OtlpSpan& span : collector_.spans()) {
    EXPECT_EQ(Hex(span.trace_id()), kTraceId) << span.name();
  }
  EXPECT_OK(box.Finish());
  EXPECT_OK(other.Finish());
}

TEST_F(TracingContract, BeginsTracesWhereNobodyElseDoes) {
  StartTracing("1");
  ASSERT_TRUE(collector_.Listen(socket()));
  Box box = MakeBox("one");
  ASSERT_TRUE(box.Announce());
  EXPECT_OK(box.Create());
  EXPECT_OK(box.Start());
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_OK(box.Wait());
  const auto exit = Comes("exit", "one");
  const auto event = Comes("event /tasks/exit", "one");
  ASSERT_TRUE(exit && event);
  EXPECT_EQ(exit->parent_span_id(), "");
  EXPECT_EQ(event->parent_span_id(), exit->span_id());
  EXPECT_TRUE(Comes("Kill", "one"));
  EXPECT_OK(box.Finish());
}

TEST_F(TracingContract, GoesOnAfterEndsOfEngineAndProgram) {
  StartTracing("1");
  ASSERT_TRUE(collector_.Listen(socket()));
  Box box = MakeBox("one");
  ASSERT_TRUE(box.Announce());
  EXPECT_OK(box.Create());
  EXPECT_OK(box.Start());
  ASSERT_TRUE(Comes("Start", "one"));

  node_.KillEngine();
  EXPECT_OK(box.Pause());
  EXPECT_TRUE(Comes("Pause", "one"));

  const pid_t program = GrpcProgram();
  ASSERT_GT(program, 0);
  ASSERT_TRUE(Signal(program, SIGKILL));
  ASSERT_TRUE(e2e::Eventually([&] { return GrpcProgram() > 0 && GrpcProgram() != program; }));
  EXPECT_OK(box.Resume());
  EXPECT_TRUE(Comes("Resume", "one"));
  EXPECT_OK(box.Finish());
}

TEST_F(TracingContract, HoldsUpNobodyWhileTheCollectorIsAway) {
  StartTracing("1");
  Box box = MakeBox("one");
  ASSERT_TRUE(box.Announce());
  EXPECT_OK(box.Create());
  EXPECT_OK(box.Start());
  ASSERT_TRUE(collector_.Listen(socket()));
  EXPECT_TRUE(Comes("Create", "one")) << "there was room for it";
  collector_.GoAway();
  EXPECT_OK(box.Pause());
  EXPECT_OK(box.Resume());
  EXPECT_OK(box.Finish());
}

TEST_F(TracingContract, IsOffWhereNobodyAsksForIt) {
  Start("");
  Box box = MakeBox("one");
  ASSERT_TRUE(box.Announce());
  EXPECT_OK(TracedCall(box, "Create", box.CreateRequest(), kTraceId));
  auto client = rpc::BlockingClient::Connect(node_.run_dir() + "/gantry.sock");
  ASSERT_OK(client);
  const auto taken = client->Call(span_api::kService, span_api::kTake,
                                  v1::TakeSpansRequest().SerializeAsString(), kCallLimit);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::kUnimplemented);
  EXPECT_EQ(GrpcProgram(), 0);
  EXPECT_OK(box.Finish());
}

}  // namespace
}  // namespace gantry::contract
