// SPDX-License-Identifier: Apache-2.0
//
// Bundles, specs and mounts that cannot be: a clear error, nothing left, and
// the next Create works.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

namespace fs = std::filesystem;

class Bundles : public ContractTest {
 protected:
  static Result<pb::CreateTaskResponse> CreateIn(const Box& box, const std::string& bundle) {
    pb::CreateTaskRequest request = box.CreateRequest();
    request.set_bundle(bundle);
    return box.client().Call<pb::CreateTaskResponse>("Create", request);
  }

  /// Refused with one of the codes of a bad argument, and nothing came of it.
  static void ExpectRefused(const Box& box, const std::string& config, const char* what) {
    e2e::WriteText(box.bundle() + "/config.json", config);
    const auto created = box.Create();
    EXPECT_CODE(created, kInvalidArgument) << what;
    EXPECT_LT(MessageOf(created).size(), 4000U) << what;
    ExpectNothing(box);
  }

  static void ExpectNothing(const Box& box) {
    EXPECT_TRUE(e2e::MountsBelow(box.bundle()).empty()) << box.bundle();
    for (const std::string& name : e2e::ListFolder(box.bundle())) {
      EXPECT_FALSE(name.starts_with("gantry")) << name;
    }
    EXPECT_CODE(box.State(), kNotFound);
  }

  static std::string GoodConfig(const Box& box) {
    return MakeSpec(node(), box.id(), BoxOptions()).dump();
  }
};

TEST_P(Bundles, ThatAreMissing) {
  Box& box = Announced();
  EXPECT_CODE(CreateIn(box, node().root() + "/no/such/bundle"), kNotFound);
  EXPECT_CODE(CreateIn(box, ""), kInvalidArgument);
  ExpectNothing(box);
  EXPECT_OK(box.Create());
}

TEST_P(Bundles, ThatAreNoFolders) {
  Box& box = Announced();
  const std::string file = box.bundle() + "/file";
  e2e::WriteText(file, "x");
  EXPECT_CODE(CreateIn(box, file), kInvalidArgument);
  const std::string link = box.bundle() + "/link";
  fs::create_directory_symlink(box.bundle(), link);
  EXPECT_CODE(CreateIn(box, link), kInvalidArgument);
  const std::string fifo = box.bundle() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_CODE(CreateIn(box, fifo), kInvalidArgument);
  ExpectNothing(box);
  EXPECT_OK(box.Create());
}

TEST_P(Bundles, WithPathsThatAreNotPlain) {
  Box& box = Announced();
  for (const std::string& path :
       {std::string("relative/path"), std::string("/"), box.bundle() + "/",
        box.bundle() + "/../" + box.id(), box.bundle() + "//x", "/" + std::string(10000, 'x'),
        box.bundle() + std::string("\0x", 2)}) {
    EXPECT_CODE(CreateIn(box, path), kInvalidArgument) << path.substr(0, 80);
  }
  ExpectNothing(box);
}

TEST_P(Bundles, WithoutAConfig) {
  Box& box = Announced();
  fs::remove(box.bundle() + "/config.json");
  EXPECT_CODE(box.Create(), kNotFound);
  fs::create_directory(box.bundle() + "/config.json");
  EXPECT_FALSE(box.Create().has_value());
  fs::remove(box.bundle() + "/config.json");
  ASSERT_EQ(mkfifo((box.bundle() + "/config.json").c_str(), 0600), 0);
  EXPECT_FALSE(box.Create().has_value()) << "a fifo must not block";
  ExpectNothing(box);
}

TEST_P(Bundles, WithAConfigThatIsNoSpec) {
  Box& box = Announced();
  const std::string good = GoodConfig(box);
  ExpectRefused(box, "", "empty");
  ExpectRefused(box, good.substr(0, good.size() / 2), "truncated");
  ExpectRefused(box, "this is not JSON", "text");
  ExpectRefused(box, "[]", "an array");
  ExpectRefused(box, "null", "null");
  ExpectRefused(box, std::string(200000, '['), "brackets");
  ExpectRefused(box, std::string("\x7f\x45\x4c\x46\0\0\0", 7), "bytes");
  e2e::WriteText(box.bundle() + "/config.json", good);
  EXPECT_OK(box.Create());
}

TEST_P(Bundles, WithWrongTypesInTheConfig) {
  Box& box = Announced();
  const Json good = MakeSpec(node(), box.id(), BoxOptions());
  const std::vector<std::pair<const char*, Json>> patches = {{"process", "text"},
                                                             {"process", Json::array()},
                                                             {"process", {{"args", "sleep"}}},
                                                             {"process", {{"args", {1, 2}}}},
                                                             {"process", {{"env", 5}}},
                                                             {"root", 7},
                                                             {"root", {{"path", 9}}},
                                                             {"linux", "text"},
                                                             {"linux", {{"namespaces", {1}}}},
                                                             {"mounts", "text"},
                                                             {"annotations", {{"a", 1}}}};
  for (const auto& [key, value] : patches) {
    Json spec = good;
    spec.merge_patch({{key, value}});
    ExpectRefused(box, spec.dump(), (std::string(key) + " " + value.dump()).c_str());
  }
}

TEST_P(Bundles, WithAHugeConfig) {
  Box& box = Announced();
  Json spec = MakeSpec(node(), box.id(), BoxOptions());
  spec["annotations"]["filler"] = std::string(size_t{50} << 20, 'x');
  e2e::WriteText(box.bundle() + "/config.json", spec.dump());
  EXPECT_CODE(box.Create(), kInvalidArgument);
  ExpectNothing(box);
}

TEST_P(Bundles, WithALargeConfigWork) {
  Json extra = Json::object();
  extra["annotations"]["filler"] = std::string(size_t{4} << 20, 'x');
  Box& box = Running({.args = {"true"}, .spec = extra});
  EXPECT_OK(box.Wait());
}

TEST_P(Bundles, WithConfigsThatLeaveOutPartsAreServedOrRefused) {
  const pid_t engine = node().Engine();
  const Json all = {{"annotations", nullptr}, {"hostname", nullptr}, {"mounts", nullptr}};
  for (const Json& without : {Json{{"annotations", nullptr}}, Json{{"hostname", nullptr}},
                              Json{{"mounts", nullptr}}, all}) {
    SCOPED_TRACE(without.dump());
    Box& box = Announced({.args = {"sh", "-c", "exit 5"}, .spec = without});
    const auto created = box.Create();
    if (created) {
      EXPECT_OK(box.Start());
      EXPECT_EQ(Got(box.Wait()).exit_status(), 5U);
    } else {
      // crun takes no spec without mounts.
      EXPECT_TRUE(without.contains("mounts")) << MessageOf(created);
      EXPECT_NE(MessageOf(created).find("mounts"), std::string::npos) << MessageOf(created);
      ExpectNothing(box);
    }
    Finish(box);
  }
  EXPECT_EQ(node().Engine(), engine) << "it was lost";
}

/// Of an engine, or of a node, that was killed half-way through a write.
TEST_P(Bundles, WithWhatACrashHasLeftWork) {
  Box& box = Announced();
  const std::string folder = box.bundle() + "/";
  const char* const files[] = {"gantry.record",     "gantry.record.abcdefgh.tmp",
                               "gantry.record.tmp", "gantry.record.bad",
                               "options.json.tmp",  "foreign"};
  for (const char* file : files) {
    e2e::WriteText(folder + file, "half a rec");
  }
  fs::create_directory(folder + "gantry.record.zzzzzzzz.tmp");
  fs::create_symlink("/no/such/file", folder + "gantry.record.yyyyyyyy.tmp");
  EXPECT_OK(box.Create());
  EXPECT_OK(box.Start());
  node().KillEngine();
  EXPECT_OK(box.Exec("x1", {"true"}));
  EXPECT_OK(box.Start("x1"));
  EXPECT_OK(box.Wait("x1"));
  EXPECT_OK(box.Kill(9));
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
  EXPECT_OK(box.Delete());
  EXPECT_EQ(e2e::ReadText(folder + "foreign"), "half a rec") << "it is somebody else's";
  EXPECT_FALSE(fs::exists(folder + "gantry.record"));
  // What has gantry's name, and was not made by a write of its own, is nobody's to remove.
  for (const std::string& name : e2e::ListFolder(box.bundle())) {
    if (name.starts_with("gantry.record")) {
      fs::remove(folder + name);
    }
  }
}

class Mounts : public Bundles {
 protected:
  static pb::CreateTaskRequest With(const Box& box,
                                    const std::vector<std::vector<std::string>>& mounts) {
    pb::CreateTaskRequest request = box.CreateRequest();
    for (const auto& words : mounts) {
      auto* mount = request.add_rootfs();
      mount->set_type(words.at(0));
      mount->set_source(words.at(1));
      mount->set_target(words.at(2));
      for (size_t i = 3; i < words.size(); ++i) {
        mount->add_options(words[i]);
      }
    }
    return request;
  }

  static Result<pb::CreateTaskResponse> Create(const Box& box,
                                               const pb::CreateTaskRequest& request) {
    return box.client().Call<pb::CreateTaskResponse>("Create", request);
  }
};

TEST_P(Mounts, OfAnUnknownTypeAreUndone) {
  Box& box = Announced();
  // The first mount, of the root itself, succeeds in each of these.
  const auto created = Create(box, With(box, {{"nosuchfs", "none", ""}}));
  EXPECT_FALSE(created.has_value());
  EXPECT_NE(MessageOf(created).find("nosuchfs"), std::string::npos) << MessageOf(created);
  ExpectNothing(box);
  EXPECT_OK(box.Create());
}

TEST_P(Mounts, ThatFailHalfWayAreUndone) {
  Box& box = Announced();
  const std::vector<std::vector<std::string>> bad = {
      {"bind", node().root() + "/no/such/source", "", "rbind"},
      {"tmpfs", "tmpfs", "no/such/target"},
      {"tmpfs", "tmpfs", "mnt", "no_such_option=1"},
      {"tmpfs", "tmpfs", "mnt", "X-containerd.mkdir.path=/x"},
      {"ext4", node().root() + "/no/such/image", "", "loop"},
      {"overlay", "overlay", "", "lowerdir=/no/such/lower"},
      {"fuse.nothing", "x", ""}};
  for (const auto& mount : bad) {
    EXPECT_FALSE(Create(box, With(box, {{"tmpfs", "tmpfs", "tmp"}, mount})).has_value())
        << mount[0];
    ExpectNothing(box);
  }
  EXPECT_OK(box.Create());
}

TEST_P(Mounts, LeadNowhereElse) {
  Box& box = Announced();
  for (const char* target : {"../../outside", "/../../outside"}) {
    IgnoreError(Create(box, With(box, {{"tmpfs", "tmpfs", target}})),
                "refused, or looked up inside");
    EXPECT_TRUE(e2e::MountsBelow(node().root() + "/outside").empty());
    IgnoreError(box.Delete(), "it may not have been made");
  }
}

TEST_P(Mounts, AreUndoneWhereTheRuntimeFails) {
  Box& box = Announced();
  Json spec = MakeSpec(node(), box.id(), BoxOptions());
  spec["mounts"].push_back({{"destination", "/mnt"},
                            {"type", "bind"},
                            {"source", node().root() + "/no/such/volume"},
                            {"options", {"rbind"}}});
  e2e::WriteText(box.bundle() + "/config.json", spec.dump());
  const auto created = box.Create();
  EXPECT_FALSE(created.has_value());
  ExpectNothing(box);
  e2e::WriteText(box.bundle() + "/config.json", GoodConfig(box));
  EXPECT_OK(box.Create());
}

TEST_P(Mounts, InSeveralLayersAreTakenDownByDelete) {
  Box& box = Announced();
  ASSERT_OK(Create(box, With(box, {{"tmpfs", "tmpfs", "tmp"}, {"tmpfs", "tmpfs", "mnt"}})));
  EXPECT_EQ(e2e::MountsBelow(box.bundle()).size(), 3U);
  EXPECT_OK(box.Start());
  EXPECT_OK(box.Kill(9));
  EXPECT_OK(box.Wait());
  EXPECT_OK(box.Delete());
  EXPECT_TRUE(e2e::MountsBelow(box.bundle()).empty());
}

class Streams : public Bundles {};

TEST_P(Streams, ThatCannotBeAreRefused) {
  Box& box = Announced();
  e2e::WriteText(box.bundle() + "/file", "x");
  for (const std::string& path :
       {std::string("relative"), box.bundle() + "/no/such/fifo", box.bundle() + "/file",
        box.bundle(), std::string("https://example.com"), std::string("binary:///no/such/logger"),
        std::string("file://"), std::string(10000, 'x')}) {
    pb::CreateTaskRequest request = box.CreateRequest();
    request.set_stdout(path);
    const auto created = box.client().Call<pb::CreateTaskResponse>("Create", request);
    EXPECT_FALSE(created.has_value()) << path.substr(0, 80);
    ExpectNothing(box);
  }
  EXPECT_OK(box.Create());
}

TEST_P(Streams, WithoutAReaderEndInADeadline) {
  Box& box = Announced();
  const std::string fifo = box.bundle() + "/out";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  pb::CreateTaskRequest request = box.CreateRequest();
  request.set_stdout(fifo);
  EXPECT_CODE(box.client().Call<pb::CreateTaskResponse>("Create", request), kDeadlineExceeded);
  ExpectNothing(box);
}

class Handlers : public Bundles {};

TEST_P(Handlers, ThatNobodyConfiguredAreRefused) {
  Box box(node(), Id(), "nobody");
  ASSERT_TRUE(box.Announce());
  const auto created = box.Create();
  EXPECT_CODE(created, kInvalidArgument);
  EXPECT_NE(MessageOf(created).find("nobody"), std::string::npos) << MessageOf(created);
  ExpectNothing(box);
  EXPECT_OK(box.Finish());
}

TEST_P(Handlers, WhosePluginIsAnotherOneAreRefused) {
  Box box(node(), Id(), "broken");
  ASSERT_TRUE(box.Announce());
  const auto created = box.Create();
  EXPECT_FALSE(created.has_value());
  EXPECT_NE(MessageOf(created).find("broken"), std::string::npos) << MessageOf(created);
  ExpectNothing(box);
  EXPECT_OK(box.Finish());
}

INSTANTIATE_CONTRACT(Bundles);
INSTANTIATE_CONTRACT(Mounts);
INSTANTIATE_CONTRACT(Streams);
INSTANTIATE_CONTRACT(Handlers);

}  // namespace
}  // namespace gantry::contract
