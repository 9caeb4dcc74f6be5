// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/oci/spec.h>

namespace gantry::oci {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kSpec[] = R"({
  "ociVersion": "1.1.0",
  "process": {
    "terminal": true, "consoleSize": {"height": 25, "width": 80},
    "user": {"uid": 1000, "gid": 100, "additionalGids": [10, 11], "umask": 18},
    "args": ["sh", "-c", "true"], "env": ["PATH=/bin"], "cwd": "/"
  },
  "root": {"path": "rootfs", "readonly": true},
  "hostname": "box",
  "mounts": [{"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid"]}],
  "annotations": {"io.kubernetes.cri.sandbox-id": "pod"},
  "linux": {
    "namespaces": [{"type": "pid"}, {"type": "network", "path": "/var/run/netns/x"}],
    "cgroupsPath": "/k8s/c", "resources": {"memory": {"limit": 1048576}}
  },
  "hooks": {}
})";

TEST(ParseSpec, ReadsWhatTheCoreActsOn) {
  const auto spec = ParseSpec(kSpec, "config.json");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_TRUE(spec->process.terminal);
  ASSERT_TRUE(spec->process.console_size.has_value());
  EXPECT_EQ(spec->process.console_size->width, 80);
  EXPECT_EQ(spec->process.user.uid, 1000U);
  EXPECT_EQ(spec->process.user.umask, 18U);
  EXPECT_THAT(spec->process.user.additional_gids, ElementsAre(10, 11));
  EXPECT_THAT(spec->process.args, ElementsAre("sh", "-c", "true"));
  EXPECT_TRUE(spec->root.readonly);
  EXPECT_EQ(spec->RootPath("/b"), "/b/rootfs");
  EXPECT_EQ(spec->mounts.at(0).options.at(0), "nosuid");
  EXPECT_EQ(spec->annotation("io.kubernetes.cri.sandbox-id"), "pod");
  EXPECT_EQ(spec->annotation("else"), "");
  EXPECT_EQ(spec->FindNamespace("network")->path, "/var/run/netns/x");
  EXPECT_EQ(spec->FindNamespace("user"), nullptr);
  EXPECT_EQ(spec->cgroups_path, "/k8s/c");
  EXPECT_EQ(spec->resources_json, R"({"memory":{"limit":1048576}})");
  EXPECT_EQ(spec->json, kSpec);
}

std::string WithNamespaces(const std::string& list) {
  return R"({"ociVersion": "1.0.2", "process": {"args": ["a"], "cwd": "/"}, "root": {"path": "/r"},
             "linux": {"namespaces": )" +
         list + "}}";
}

TEST(SpecPidNamespace, IsPrivateOnlyWhenNew) {
  EXPECT_TRUE(ParseSpec(WithNamespaces(R"([{"type": "pid"}])"), "f")->has_private_pid_namespace());
  EXPECT_FALSE(ParseSpec(WithNamespaces(R"([{"type": "pid", "path": "/proc/1/ns/pid"}])"), "f")
                   ->has_private_pid_namespace());
  EXPECT_FALSE(ParseSpec(WithNamespaces("null"), "f")->has_private_pid_namespace());
}

struct Bad {
  const char* name;
  /// A member of kSpec's text to replace, and by what.
  const char* from;
  const char* to;
  const char* error;
};

class ParseSpecBad : public testing::TestWithParam<Bad> {};

TEST_P(ParseSpecBad, NamesThePlace) {
  std::string text = kSpec;
  const std::string_view from = GetParam().from;
  text.replace(text.find(from), from.size(), GetParam().to);
  const auto spec = ParseSpec(text, "/b/config.json");
  ASSERT_FALSE(spec.has_value());
  EXPECT_EQ(spec.error().code, Code::kInvalidArgument);
  EXPECT_THAT(spec.error().message,
              HasSubstr(std::string("'/b/config.json': ") + GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    All, ParseSpecBad,
    testing::Values(
        Bad{"Version", "\"1.1.0\"", "\"2.0\"", "/ociVersion: not a version 1"},
        Bad{"VersionType", "\"1.1.0\"", "1", "/ociVersion: expected a string, found a number"},
        Bad{"NoProcess", "\"process\"", "\"x\"", "/process: missing"},
        Bad{"ProcessType", "\"process\": {", "\"process\": 5, \"x\": {",
            "/process: expected an object, found a number"},
        Bad{"NoArgs", "\"args\"", "\"x\"", "/process/args: no program to run"},
        Bad{"EmptyArgs", "[\"sh\", \"-c\", \"true\"]", "[]", "/process/args: no program to run"},
        Bad{"ArgType", "\"-c\"", "7", "/process/args/1: expected a string, found a number"},
        Bad{"ArgNul", "\"-c\"", "\"\\u0000\"", "/process/args/1: a string with a NUL"},
        Bad{"EnvType", "[\"PATH=/bin\"]", "{}", "/process/env: expected an array, found an object"},
        Bad{"Cwd", "\"cwd\": \"/\"", "\"cwd\": \"x\"", "/process/cwd: not an absolute path"},
        Bad{"Uid", "1000", "-1", "/process/user/uid: must not be negative"},
        Bad{"Terminal", "\"terminal\": true", "\"terminal\": 1",
            "/process/terminal: expected a boolean, found a number"},
        Bad{"NoRoot", "\"rootfs\"", "\"\"", "/root/path: missing"},
        Bad{"RootType", "\"root\": {", "\"root\": [], \"x\": {", "/root: expected an object"},
        Bad{"MountType", "[\"nosuid\"]", "\"nosuid\"", "/mounts/0/options: expected an array"},
        Bad{"MountTarget", "\"destination\"", "\"x\"", "/mounts/0/destination: missing"},
        Bad{"Annotation", "\"pod\"", "7",
            "/annotations/io.kubernetes.cri.sandbox-id: expected a string"},
        Bad{"Namespace", "\"pid\"", "\"pit\"", "/linux/namespaces/0/type: not a kind"},
        Bad{"NamespaceTwice", "\"pid\"", "\"network\"", "/linux/namespaces/1/type: listed twice"},
        Bad{"NamespacePath", "/var/run/netns/x", "netns/x",
            "/linux/namespaces/1/path: not an absolute path"}),
    [](const auto& bad) { return std::string(bad.param.name); });

Error ErrorOf(const std::string& text) {
  auto spec = ParseSpec(text, "/b/config.json");
  return spec ? Error{Code::kOk, 0, "", ""} : spec.error();
}

TEST(ParseSpec, RefusesEveryTruncation) {
  const std::string text = kSpec;
  for (size_t length = 0; length < text.size(); length += 7) {
    EXPECT_EQ(ErrorOf(text.substr(0, length)).code, Code::kInvalidArgument) << length;
  }
}

TEST(ParseSpec, RefusesWhatIsNotJson) {
  for (const char* const text : {"", "null", "[]", "7", "hello",
                                 "\x7f"
                                 "ELF",
                                 "{} {}"}) {
    EXPECT_EQ(ErrorOf(text).code, Code::kInvalidArgument) << text;
  }
}

TEST(ParseSpec, RefusesDeepNesting) {
  EXPECT_THAT(ErrorOf("{\"a\":" + std::string(1 << 20, '[')).message, HasSubstr("nested deeper"));
}

TEST(ParseProcess, SaysWhatIsConfined) {
  const auto confined = [](const std::string& part) {
    return ParseProcess(R"({"args":["a"],"cwd":"/")" + part + "}").value().confined();
  };
  EXPECT_FALSE(confined(""));
  EXPECT_FALSE(confined(R"(,"apparmorProfile":"","selinuxLabel":"")"));
  EXPECT_TRUE(confined(R"(,"apparmorProfile":"some-profile")"));
  EXPECT_TRUE(confined(R"(,"selinuxLabel":"system_u:system_r:container_t:s0")"));
}

TEST(ParseProcess, KeepsTheTextAndTakesTheRequestsTerminal) {
  const std::string text = R"({"args": ["id"], "cwd": "/", "user": {}, "x": 1})";
  const auto process = ParseProcess(text);
  ASSERT_TRUE(process.has_value()) << process.error().message;
  EXPECT_EQ(process->json, text);
  EXPECT_FALSE(process->terminal);
  const auto with = WithTerminal(text, true);
  ASSERT_TRUE(with.has_value());
  EXPECT_TRUE(ParseProcess(*with)->terminal);
  EXPECT_THAT(*with, HasSubstr("\"x\":1"));
}

TEST(ParseProcess, RefusesBadOnes) {
  for (const char* const text :
       {"", "null", "[]", "{}", R"({"args": [""], "cwd": "/"})", R"({"args": ["a"]})"}) {
    const auto process = ParseProcess(text);
    ASSERT_FALSE(process.has_value()) << text;
    EXPECT_EQ(process.error().code, Code::kInvalidArgument);
    EXPECT_THAT(process.error().message, HasSubstr("exec spec"));
  }
}

}  // namespace
}  // namespace gantry::oci
