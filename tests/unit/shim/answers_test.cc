// SPDX-License-Identifier: Apache-2.0
#include "core/shim/answers.h"

#include <gmock/gmock.h>

namespace gantry::shim {
namespace {

TEST(StartAnswer, HasTheFormOfEachContainerd) {
  EXPECT_EQ(StartAnswer(ChooseForm(false, 0, 0), "unix:///s"), "unix:///s");
  EXPECT_EQ(StartAnswer(ChooseForm(true, 0, 1), "unix:///s"),
            R"({"version":2,"address":"unix:///s","protocol":"ttrpc"})");
  EXPECT_EQ(ChooseForm(true, 0, 0), AnswerForm::kVersion2) << "every one understands it";
  EXPECT_EQ(ChooseForm(true, 0, 2), AnswerForm::kVersion3);
  EXPECT_EQ(StartAnswer(ChooseForm(true, 3, 0), "unix:///s"),
            R"({"version":3,"address":"unix:///s","protocol":"ttrpc"})");
}

TEST(StartAnswer, EscapesTheAddress) {
  EXPECT_EQ(StartAnswer(AnswerForm::kVersion2, R"(a"b\c)"),
            R"({"version":2,"address":"a\"b\\c","protocol":"ttrpc"})");
}

TEST(DeleteAnswer, IsADeleteResponse) {
  const std::string bytes = DeleteAnswer({42, 137, 3'000'000'007, true});
  EXPECT_EQ(bytes, std::string("\x08\x2a\x10\x89\x01\x1a\x04\x08\x03\x10\x07", 11));
}

TEST(DeleteAnswer, SaysNoPidAsContainerdDoes) {
  const std::string bytes = DeleteAnswer({link::kNoPid, 137, 0, false});
  EXPECT_EQ(bytes.substr(0, 6), std::string("\x08\xff\xff\xff\xff\x0f", 6));
}

TEST(InfoAnswer, NamesTheRuntime) {
  EXPECT_THAT(InfoAnswer("wasm", {}), testing::HasSubstr("io.containerd.gantry-wasm.v1"));
  EXPECT_THAT(InfoAnswer("", {}), testing::HasSubstr("io.containerd.gantry.v1"));
}

TEST(InfoAnswer, PromisesWhatTheHandlerPromises) {
  EXPECT_THAT(InfoAnswer("", {.json = R"({"mountOptions":["rro"]})", .why_not = {}}),
              testing::AllOf(testing::HasSubstr(R"({"mountOptions":["rro"]})"),
                             testing::Not(testing::HasSubstr("idmap"))));
}

TEST(InfoAnswer, PromisesNothingThatIsNotKnown) {
  const std::string answer = InfoAnswer("", {.json = {}, .why_not = "because"});
  EXPECT_THAT(answer, testing::HasSubstr(R"("mountExtensions":{"idmap":{"enabled":false}})"));
  EXPECT_THAT(answer, testing::Not(testing::HasSubstr("rro")));
  EXPECT_THAT(answer, testing::EndsWith("\x12\x07"
                                        "because"));
}

}  // namespace
}  // namespace gantry::shim
