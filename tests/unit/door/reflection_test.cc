// SPDX-License-Identifier: Apache-2.0
//
// Server reflection over the descriptors that gantry-grpc has.
#include "core/door/reflection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/grpc/reflection.pb.h"

namespace gantry::door {
namespace {

namespace pb = ::grpc::reflection::v1;
using testing::ElementsAre;

class ReflectionTest : public testing::Test {
 protected:
  pb::ServerReflectionResponse Ask(const pb::ServerReflectionRequest& request) {
    const auto bytes = reflection_.Answer(request.SerializeAsString());
    EXPECT_TRUE(bytes) << bytes.error().message;
    pb::ServerReflectionResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes.value_or("")));
    EXPECT_EQ(response.original_request().SerializeAsString(), request.SerializeAsString());
    return response;
  }

  pb::ServerReflectionResponse AskSymbol(const std::string& symbol) {
    pb::ServerReflectionRequest request;
    request.set_file_containing_symbol(symbol);
    return Ask(request);
  }

  Reflection reflection_{*Descriptors::Read(ServedFiles()), {"gantry.v1.Operator"}};
};

TEST_F(ReflectionTest, ListsTheServices) {
  pb::ServerReflectionRequest request;
  request.set_list_services("*");
  std::vector<std::string> names;
  const pb::ServerReflectionResponse response = Ask(request);
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, ElementsAre("gantry.v1.Operator", "grpc.reflection.v1.ServerReflection",
                                 "grpc.reflection.v1alpha.ServerReflection"));
}

TEST_F(ReflectionTest, KnowsWhatEachServiceIs) {
  for (const char* symbol :
       {"gantry.v1.Operator", "gantry.v1.Operator.Events", "gantry.v1.Event", "gantry.v1.Event.pid",
        "containerd.services.sandbox.v1.Controller", "grpc.health.v1.Health",
        "grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection"}) {
    EXPECT_GT(AskSymbol(symbol).file_descriptor_response().file_descriptor_proto_size(), 0)
        << symbol;
  }
  EXPECT_EQ(AskSymbol("gantry.v1.None").error_response().error_code(), 5) << "NOT_FOUND";
}

TEST_F(ReflectionTest, GivesAFileWithWhatItImportsFirst) {
  pb::ServerReflectionRequest request;
  request.set_file_by_filename("proto/containerd/controller.proto");
  const auto files = Ask(request).file_descriptor_response().file_descriptor_proto();
  ASSERT_EQ(files.size(), 4) << "wire, types, types_sandbox, and it";
  EXPECT_THAT(files[3], testing::HasSubstr("proto/containerd/controller.proto"));
  request.set_file_by_filename("proto/none.proto");
  EXPECT_EQ(Ask(request).error_response().error_code(), 5);
}

TEST_F(ReflectionTest, HasTheOlderServiceOverTheMessagesOfVersion1) {
  const auto files = AskSymbol("grpc.reflection.v1alpha.ServerReflection")
                         .file_descriptor_response()
                         .file_descriptor_proto();
  ASSERT_EQ(files.size(), 2) << "the messages, and it";
  EXPECT_THAT(files[0], testing::HasSubstr("proto/grpc/reflection.proto"));
  EXPECT_THAT(files[1], testing::HasSubstr(".grpc.reflection.v1.ServerReflectionRequest"));
}

TEST_F(ReflectionTest, RefusesWhatIsNoQuestion) {
  EXPECT_EQ(Ask({}).error_response().error_code(), 3) << "INVALID_ARGUMENT";
  pb::ServerReflectionRequest request;
  request.mutable_file_containing_extension()->set_extension_number(1);
  EXPECT_EQ(Ask(request).error_response().error_code(), 5);
  EXPECT_FALSE(reflection_.Answer("\xff\xff"));
}

TEST(Descriptors, AreReadOfADescriptorSetAlone) {
  EXPECT_FALSE(Descriptors::Read("\x0a\x7f no set"));
  EXPECT_TRUE(Descriptors::Read("")->File("a").empty());
}

}  // namespace
}  // namespace gantry::door
