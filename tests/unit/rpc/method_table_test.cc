// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/method_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/rpc/typed.h"
#include "proto/containerd/task/task.pb.h"
#include "tests/unit/async/loop_driver.h"

namespace gantry::rpc {
namespace {

using containerd::task::StartRequest;
using containerd::task::StartResponse;
using test::Await;

async::Task<Result<std::string>> Echo(rpc::Call call) { co_return call.payload; }

TEST(MethodTableTest, RefusesDuplicatesAndEmptyNames) {
  MethodTable table;
  EXPECT_TRUE(table.Add("a.Service", "Do", Echo));
  EXPECT_TRUE(table.Add("b.Service", "Do", Echo));
  EXPECT_EQ(table.Add("a.Service", "Do", Echo).error().code, Code::kAlreadyExists);
  EXPECT_EQ(table.Add("", "Do", Echo).error().code, Code::kInvalidArgument);
  EXPECT_EQ(table.Add("a.Service", "", Echo).error().code, Code::kInvalidArgument);
  EXPECT_EQ(table.Add("a.Service", "Other", {}).error().code, Code::kInvalidArgument);
  EXPECT_THAT(table.Names(), testing::ElementsAre("a.Service/Do", "b.Service/Do"));
}

TEST(MethodTableTest, NamesWhatIsMissingAsAGoServerDoes) {
  MethodTable table;
  ASSERT_TRUE(table.Add("a.Service", "Do", Echo));
  EXPECT_TRUE(table.Find("a.Service", "Do"));
  const auto service = table.Find("c.Service", "Do");
  ASSERT_FALSE(service);
  EXPECT_EQ(service.error().code, Code::kUnimplemented);
  EXPECT_EQ(service.error().message, "service c.Service");
  const auto method = table.Find("a.Service", "Undo");
  ASSERT_FALSE(method);
  EXPECT_EQ(method.error().code, Code::kUnimplemented);
  EXPECT_EQ(method.error().message, "method Undo");
}

class TypedTest : public testing::Test {
 protected:
  Result<std::string> Run(std::string payload) {
    const auto handler = table_.Find("t.Task", "Start");
    rpc::Call call;
    call.ns = "k8s.io";
    call.payload = std::move(payload);
    return Await(loop_, (**handler)(std::move(call)));
  }

  async::Loop loop_;
  MethodTable table_;
};

TEST_F(TypedTest, HandlersTakeAndGiveMessages) {
  ASSERT_TRUE((AddTyped<StartRequest, StartResponse>(
      table_, "t.Task", "Start",
      [this](const CallContext& call, StartRequest request) -> async::Task<Result<StartResponse>> {
        co_await async::Sleep(loop_, std::chrono::nanoseconds(1));
        EXPECT_EQ(call.ns, "k8s.io");
        EXPECT_EQ(request.id(), "a1");
        StartResponse response;
        response.set_pid(42);
        co_return response;
      })));
  StartRequest request;
  request.set_id("a1");
  const auto result = Run(request.SerializeAsString());
  ASSERT_TRUE(result);
  StartResponse response;
  ASSERT_TRUE(response.ParseFromString(*result));
  EXPECT_EQ(response.pid(), 42U);
}

TEST_F(TypedTest, ErrorsAndMalformedRequests) {
  ASSERT_TRUE((AddTyped<StartRequest, StartResponse>(
      table_, "t.Task", "Start",
      [](const CallContext&, StartRequest) -> async::Task<Result<StartResponse>> {
        co_return Fail(Code::kNotFound, "container not created: not found");
      })));
  EXPECT_EQ(Run("").error().message, "container not created: not found");
  const auto malformed = Run("\x0a\x05xx");
  ASSERT_FALSE(malformed);
  EXPECT_EQ(malformed.error().code, Code::kInvalidArgument);
  EXPECT_THAT(malformed.error().message, testing::HasSubstr("containerd.task.StartRequest"));
}

}  // namespace
}  // namespace gantry::rpc
