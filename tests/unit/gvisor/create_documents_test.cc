// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/create_documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/format.h>

namespace gantry::gvisor {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

/// The spec as all launchers get it.
Spec Made(const Json& document, const Overlay& overlay = {}) {
  auto made =
      MakeSpec({.json = document.dump(), .rootfs = "/bundle/rootfs", .bundle = "/bundle"}, overlay);
  EXPECT_TRUE(made) << made.error().message;
  return made.value_or(Spec());
}

Json Written(const Spec& spec, std::optional<int> image = {}) {
  const auto text = CreateDocument(spec, image);
  EXPECT_TRUE(text) << text.error().message;
  return Json::parse(text.value_or("{}"));
}

/// The namespaces of the type.
Json Namespaces(const Json& document, const std::string& type) {
  Json found = Json::array();
  for (const Json& one : document["linux"]["namespaces"]) {
    if (one["type"] == type) {
      found.push_back(one);
    }
  }
  return found;
}

TEST(CreateDocument, IsTheSpecAsOtherLaunchersGetIt) {
  const Spec spec =
      Made({{"process", {{"args", {"true"}}, {"selinuxLabel", "x"}}},
            {"root", {{"path", "rootfs"}}},
            {"mounts", {{{"destination", "/v"}, {"type", "bind"}, {"source", "volume"}}}},
            {"linux", {{"namespaces", {{{"type", "network"}, {"path", "/run/netns/n"}}}}}}});
  const Json document = Written(spec);
  EXPECT_EQ(document["root"]["path"], "/bundle/rootfs");
  EXPECT_EQ(document["mounts"][0]["source"], "/bundle/volume");
  EXPECT_FALSE(document["process"].contains("selinuxLabel"));
  EXPECT_EQ(Namespaces(document, "network"),
            Json::parse(R"([{"type": "network", "path": "/run/netns/n"}])"));
  EXPECT_EQ(Namespaces(document, "user"), Json::array());
}

TEST(CreateDocument, HasTheUserNamespaceThatThereIs) {
  const Spec spec =
      Made({{"linux", {{"namespaces", {{{"type", "user"}, {"path", "/proc/7/ns/user"}}}}}}});
  EXPECT_EQ(Namespaces(Written(spec), "user"),
            Json::parse(R"([{"type": "user", "path": "/proc/7/ns/user"}])"));
}

TEST(CreateDocument, HasTheUserNamespaceThatIsToBeMade) {
  const Json ids = {{{"containerID", 0}, {"hostID", 100000}, {"size", 65536}}};
  const Json document = Written(
      Made({{"linux",
             {{"namespaces", {{{"type", "user"}}}}, {"uidMappings", ids}, {"gidMappings", ids}}}}));
  EXPECT_EQ(Namespaces(document, "user"), Json::parse(R"([{"type": "user"}])"));
  EXPECT_EQ(document["linux"]["uidMappings"], ids);
}

TEST(CreateDocument, LeavesNothingToTheCommandThatIsDecided) {
  const Json document = Written(Made({{"hooks", {{"prestart", {{{"path", "/bin/false"}}}}}},
                                      {"annotations",
                                       {{"dev.gvisor.flag.debug", "true"},
                                        {"dev.gvisor.bundle.experimental-high-performance", "true"},
                                        {"other", "stays"}}}}));
  EXPECT_FALSE(document.contains("hooks"));
  EXPECT_EQ(document["annotations"], Json::parse(R"({"other": "stays"})"));
}

TEST(CreateDocument, NamesAnImageThatTheCommandIsGiven) {
  auto spec = MakeSpec(
      {.json = "{}", .rootfs = "/bundle", .bundle = "/bundle", .kind = ContainerKind::kOwnRoot},
      Overlay());
  ASSERT_TRUE(spec);
  EXPECT_EQ(Written(*spec, 3)["annotations"], Json::parse(R"({
      "dev.gvisor.spec.rootfs.type": "erofs",
      "dev.gvisor.spec.rootfs.source": "/proc/self/fd/3"})"));
}

TEST(CreateDocument, SaysOfAnImageWhatItsWritableLayerIs) {
  const auto overlay = [](const Json& asked) {
    Json annotations = {{"dev.gvisor.spec.rootfs.type", "erofs"},
                        {"dev.gvisor.spec.rootfs.source", "/images/one"}};
    annotations.update(asked);
    const Json written = Written(Made({{"annotations", annotations}}))["annotations"];
    EXPECT_EQ(written["dev.gvisor.spec.rootfs.source"], "/images/one");
    return written.value("dev.gvisor.spec.rootfs.overlay", "");
  };
  EXPECT_EQ(overlay(Json::object()), "memory");
  EXPECT_EQ(overlay({{"dev.gvisor.spec.rootfs.overlay", "memory"}}), "memory");
  EXPECT_EQ(overlay({{"dev.gvisor.spec.rootfs.overlay", "none"}}), "");
}

TEST(CreateState, TellsProcessesAndSocket) {
  const auto state = ReadCreateState(R"({"id":"c1","status":"created","goferPid":22560,
      "sandbox":{"id":"c1","pid":22564,"uid":0,"cgroup":{"cgroupunknown":null},
                 "controlSocketPath":"/b/runsc/runsc-c1.sock"},
      "goferMountConfs":[{"lower":1,"upper":2}]})");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->sentry, 22564);
  EXPECT_EQ(state->gofer, 22560);
  EXPECT_EQ(state->socket, "/b/runsc/runsc-c1.sock");
}

TEST(CreateState, MayHaveNoGofer) {
  for (const char* gofer : {"", R"("goferPid":0,)"}) {
    const auto state =
        ReadCreateState(Format(R"({{{}"sandbox":{{"pid":7,"controlSocketPath":"/b/s"}}}})", gofer));
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_EQ(state->gofer, 0);
  }
}

TEST(CreateState, OfAnotherKindIsNone) {
  for (const char* text :
       {"", "null", "[]", "{}", R"({"sandbox":null})", R"({"sandbox":{"pid":7}})",
        R"({"sandbox":{"controlSocketPath":"/b/s"}})",
        R"({"sandbox":{"pid":"7","controlSocketPath":"/b/s"}})",
        R"({"sandbox":{"pid":1,"controlSocketPath":"/b/s"}})",
        R"({"sandbox":{"pid":-7,"controlSocketPath":"/b/s"}})",
        R"({"sandbox":{"pid":7,"controlSocketPath":""}})",
        R"({"goferPid":-1,"sandbox":{"pid":7,"controlSocketPath":"/b/s"}})",
        R"({"goferPid":"x","sandbox":{"pid":7,"controlSocketPath":"/b/s"}})"}) {
    const auto state = ReadCreateState(text);
    ASSERT_FALSE(state) << text;
    EXPECT_EQ(state.error().code, Code::kInternal);
    EXPECT_THAT(state.error().message, HasSubstr("read the state of 'runsc create'"));
  }
}

TEST(CreateWords, AreItsLastAndTheirCause) {
  EXPECT_EQ(CreateWords(R"({"msg":"unknown platform: nosuch","level":"error","time":"t"})"),
            "unknown platform: nosuch");
  // Of gofer, sentry and the command, as they write them: without newlines, with a panic's text.
  EXPECT_EQ(CreateWords(R"({"msg":"opening /no: {\"x\":\"}\"}","level":"error","time":"t"}Error
{"msg":"Error reading mounts file\n","level":"error","time":"t"}{"msg":"creating container: EOF","level":"error","time":"t"}
)"),
            R"(creating container: EOF; before that: opening /no: {"x":"}"})");
}

TEST(CreateWords, AreWhatThereIs) {
  EXPECT_EQ(CreateWords(""), "");
  EXPECT_EQ(CreateWords("panic: no\n\ngoroutine 1\n"), "panic: no  goroutine 1");
  EXPECT_EQ(CreateWords(R"({"msg":"cut of)"), R"({"msg":"cut of)");
}

}  // namespace
}  // namespace gantry::gvisor
