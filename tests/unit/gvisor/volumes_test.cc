// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/spec/volumes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <gantry/format.h>

#include "core/os/fs.h"
#include "plugins/gvisor/launch/filestore.h"
#include "plugins/gvisor/pod/own_root.h"
#include "plugins/gvisor/pod/pod.h"

namespace gantry::gvisor {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Kind = Volume::Kind;

/// With the kubelet's directory of a pod.
class VolumesTest : public testing::Test {
 protected:
  /// Its path.
  std::string MakeVolume(const std::string& kind, const std::string& name) const {
    const std::string path = volumes_ + "/" + kind + "/" + name;
    fs::create_directories(path);
    return path;
  }

  std::string MakeEmptyDir(const std::string& name = "data") const {
    return MakeVolume("kubernetes.io~empty-dir", name);
  }

  static void Write(const std::string& path) { std::ofstream(path) << "text"; }

  void Hint(const std::string& name, const std::string& type, const std::string& share) {
    annotations_["dev.gvisor.spec.mount." + name + ".type"] = type;
    annotations_["dev.gvisor.spec.mount." + name + ".share"] = share;
  }

  Result<std::vector<Volume>> Find() const { return FindVolumes(annotations_, folder_.path()); }

  /// The only one.
  Volume FindOne() const {
    const auto found = Find();
    EXPECT_TRUE(found) << found.error().message;
    EXPECT_EQ(found ? found->size() : 0, 1U);
    return found && found->size() == 1 ? found->front() : Volume();
  }

  void ExpectRefused(const std::string& words) const {
    const auto found = Find();
    ASSERT_FALSE(found) << words;
    EXPECT_EQ(found.error().code, Code::kInvalidArgument);
    EXPECT_THAT(found.error().message, HasSubstr(words));
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  const std::string volumes_ = folder_.path() + "/uid-1/volumes";
  Annotations annotations_ = {{kPodUid, "uid-1"}};
};

TEST_F(VolumesTest, InMemoryIsTheSentrys) {
  const std::string path = MakeEmptyDir();
  Hint("data", "tmpfs", "pod");
  const Volume volume = FindOne();
  EXPECT_EQ(volume.kind, Kind::kMemory);
  EXPECT_EQ(volume.fields.at("type"), "tmpfs");
  EXPECT_EQ(volume.fields.at("share"), "pod");
  EXPECT_EQ(volume.source(), path);
}

TEST_F(VolumesTest, OfTheSentrysHasTheRightsOfTheHosts) {
  const std::string path = MakeEmptyDir();
  ASSERT_EQ(chmod(path.c_str(), 02770), 0);
  Hint("data", "tmpfs", "pod");
  const std::string ids = Format("uid={},gid={}", getuid(), getgid());
  EXPECT_EQ(FindOne().fields.at("options"), "mode=2770," + ids);
  annotations_["dev.gvisor.spec.mount.data.options"] = "noexec,mode=700";
  EXPECT_EQ(FindOne().fields.at("options"), "noexec,mode=700," + ids);
  annotations_["dev.gvisor.empty-dir.data.force-shared"] = "true";
  EXPECT_EQ(FindOne().fields.at("options"), "noexec,mode=700");
}

TEST_F(VolumesTest, OnDiskIsTheSentrysInAFile) {
  MakeEmptyDir();
  Hint("data", "bind", "container");
  const Volume volume = FindOne();
  EXPECT_EQ(volume.kind, Kind::kFile);
  EXPECT_EQ(volume.fields.at("type"), "tmpfs");
  EXPECT_EQ(volume.fields.at("share"), "container");
}

TEST_F(VolumesTest, ThatOthersLookIntoIsTheHosts) {
  const std::string path = MakeEmptyDir();
  const auto expect_hosts = [this] {
    const Volume volume = FindOne();
    EXPECT_EQ(volume.kind, Kind::kHost);
    EXPECT_EQ(volume.fields.at("type"), "bind");
    EXPECT_EQ(volume.fields.at("share"), "shared");
  };
  Hint("data", "tmpfs", "shared");
  expect_hosts();
  Hint("data", "tmpfs", "pod");
  annotations_["dev.gvisor.empty-dir.data.force-shared"] = "true";
  expect_hosts();
  annotations_["dev.gvisor.empty-dir.data.force-shared"] = "false";
  EXPECT_EQ(FindOne().kind, Kind::kMemory);
  Write(path + "/.gvisor.filestore.p0");
  EXPECT_EQ(FindOne().kind, Kind::kMemory) << "that of a sandbox before";
  Write(path + "/socket");
  expect_hosts();
}

TEST_F(VolumesTest, ThatIsNoEmptyDirStaysTheHosts) {
  const std::string path = MakeVolume("kubernetes.io~csi", "disk");
  Hint("disk", "bind", "container");
  const Volume volume = FindOne();
  EXPECT_EQ(volume.kind, Kind::kHost);
  EXPECT_EQ(volume.fields.at("share"), "container") << "the sentry may keep what it has read";
  EXPECT_EQ(volume.source(), path);
  Hint("disk", "tmpfs", "pod");
  ExpectRefused("'dev.gvisor.spec.mount.disk.type': 'tmpfs': must be bind");
}

TEST_F(VolumesTest, IsWhereTheKubeletHasItWhateverIsGiven) {
  const std::string path = MakeEmptyDir();
  Hint("data", "tmpfs", "pod");
  annotations_["dev.gvisor.spec.mount.data.source"] = "/etc";
  EXPECT_EQ(FindOne().source(), path);
}

TEST_F(VolumesTest, IsFoundByThePodsLogs) {
  const std::string path = MakeEmptyDir();
  annotations_ = {{"io.kubernetes.cri.sandbox-log-directory", "/var/log/pods/ns_web-0_uid-1"}};
  Hint("data", "tmpfs", "pod");
  EXPECT_EQ(FindOne().source(), path);
}

TEST_F(VolumesTest, IsWhereItIsGivenWhereThePodIsNotKnown) {
  const std::string path = MakeEmptyDir();
  annotations_.clear();
  Hint("given", "tmpfs", "pod");
  ExpectRefused("'dev.gvisor.spec.mount.given.source': '': must be a directory");
  annotations_["dev.gvisor.spec.mount.given.source"] = path;
  EXPECT_EQ(FindOne().kind, Kind::kFile);
  Hint("given", "bind", "pod");
  EXPECT_EQ(FindOne().kind, Kind::kHost);
}

TEST_F(VolumesTest, NoUidLeadsOutOfTheKubeletsDirectory) {
  for (const char* uid : {"../uid-1", "..", "a/b"}) {
    annotations_ = {{kPodUid, uid}};
    Hint("data", "tmpfs", "pod");
    ExpectRefused("where the pod's uid is not known");
  }
}

TEST_F(VolumesTest, ThatTheKubeletDoesNotHaveIsRefused) {
  Hint("data", "tmpfs", "pod");
  EXPECT_EQ(Find().error().code, Code::kFailedPrecondition);
  EXPECT_THAT(
      Find().error().message,
      HasSubstr("'dev.gvisor.spec.mount.data.type': 0 directories '" + volumes_ + "/*/data'"));
  MakeEmptyDir();
  MakeVolume("kubernetes.io~csi", "data");
  EXPECT_THAT(Find().error().message, HasSubstr("2 directories"));
}

TEST_F(VolumesTest, MalformedIsRefusedByItsName) {
  MakeEmptyDir();
  const auto with = [this](const std::string& rest, const std::string& value,
                           const std::string& words) {
    annotations_ = {{kPodUid, "uid-1"}};
    Hint("data", "bind", "pod");
    annotations_["dev.gvisor.spec.mount." + rest] = value;
    ExpectRefused("'dev.gvisor.spec.mount." + rest + "': '" + value + "': " + words);
  };
  with("data.type", "ext4", "must be bind or tmpfs");
  with("data.share", "all", "must be container or pod or shared");
  with("data.source", "data", "must be an absolute path");
  with("data.directfs", "on", "must be default or off");
  with("data.medium", "Memory", "must be of type, share, source");
  with("data", "bind", "must be dev.gvisor.spec.mount.NAME.FIELD");
  with(".type", "bind", "must be dev.gvisor.spec.mount.NAME.FIELD");
  with("a/b.type", "bind", "must be dev.gvisor.spec.mount.NAME.FIELD");
}

TEST_F(VolumesTest, IncompleteIsRefused) {
  annotations_["dev.gvisor.spec.mount.data.type"] = "bind";
  ExpectRefused("'dev.gvisor.spec.mount.data.share': missing");
  annotations_.erase("dev.gvisor.spec.mount.data.type");
  annotations_["dev.gvisor.spec.mount.data.options"] = "rw";
  ExpectRefused("'dev.gvisor.spec.mount.data.type': missing");
}

TEST_F(VolumesTest, ForcedByNoTruthIsRefused) {
  MakeEmptyDir();
  Hint("data", "bind", "pod");
  annotations_["dev.gvisor.empty-dir.data.force-shared"] = "yes";
  ExpectRefused("'dev.gvisor.empty-dir.data.force-shared': 'yes'");
}

TEST_F(VolumesTest, OfTwoThatAreOneIsRefused) {
  const std::string path = MakeEmptyDir();
  annotations_.clear();
  for (const char* name : {"a", "b"}) {
    Hint(name, "bind", "pod");
    annotations_["dev.gvisor.spec.mount." + std::string(name) + ".source"] = path;
  }
  ExpectRefused("'dev.gvisor.spec.mount.b.source': '" + path + "': must not be that of volume 'a'");
}

TEST_F(VolumesTest, AreWrittenInPlaceOfWhatWasThere) {
  MakeEmptyDir();
  Hint("data", "bind", "pod");
  annotations_["dev.gvisor.spec.mount.data.directfs"] = "off";
  const Annotations written = WithVolumes(annotations_, *Find());
  EXPECT_EQ(written.at("dev.gvisor.spec.mount.data.type"), "tmpfs");
  EXPECT_EQ(written.at("dev.gvisor.spec.mount.data.directfs"), "off");
  EXPECT_EQ(written.at(kPodUid), "uid-1");
  EXPECT_THAT(WithVolumes(annotations_, {}), ElementsAre(Pair(kPodUid, "uid-1")));
}

TEST_F(VolumesTest, AreSavedWithThePod) {
  MakeEmptyDir();
  Hint("data", "bind", "pod");
  PodRecord record;
  record.volumes = *Find();
  const auto read = PodRecord::FromJson(record.ToJson());
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->volumes.size(), 1U);
  EXPECT_EQ(read->volumes[0].name, "data");
  EXPECT_EQ(read->volumes[0].kind, Kind::kFile);
  EXPECT_EQ(read->volumes[0].fields, record.volumes[0].fields);
  Json older = Json::parse(record.ToJson());
  older.erase("volumes");
  EXPECT_THAT(PodRecord::FromJson(older.dump())->volumes, IsEmpty());
  Json damaged = Json::parse(record.ToJson());
  damaged["volumes"][0]["fields"].erase("source");
  EXPECT_EQ(PodRecord::FromJson(damaged.dump()).error().code, Code::kDataLoss);
}

TEST_F(VolumesTest, OfAPodWithoutAPauseContainerComeWithItsConfiguration) {
  SandboxRequest request;
  PodConfig config;
  config.uid = "uid-1";
  config.annotations = {{"dev.gvisor.spec.mount.data.type", "bind"},
                        {"dev.gvisor.empty-dir.data.force-shared", "true"},
                        {"dev.gvisor.flag.debug", "true"}};
  EXPECT_THAT(OwnRootOf(request, config).annotations,
              UnorderedElementsAre(Pair("dev.gvisor.spec.mount.data.type", "bind"),
                                   Pair("dev.gvisor.empty-dir.data.force-shared", "true"),
                                   Pair(kPodUid, "uid-1")));
  config.annotations.clear();
  EXPECT_THAT(OwnRootOf(request, config).annotations, IsEmpty()) << "it may have a pre-booted one";
}

/// The files of volumes that are the sentry's.
class VolumeFilesTest : public testing::Test {
 protected:
  VolumeFilesTest() {
    spec_.mounts = {{.conf = {MountConf::Lower::kNone, MountConf::Upper::kSelf},
                     .source = folder_.path(),
                     .is_pods = true}};
    spec_.volumes = {{.name = "data", .kind = Kind::kFile, .fields = {{"source", folder_.path()}}}};
  }

  Result<std::vector<UniqueFd>> Make() const { return MakeFilestores(spec_, {}, "p1"); }

  os::TempDir folder_ = os::TempDir::Create().value();
  const std::string file_ = folder_.path() + "/.gvisor.filestore.p1";
  Spec spec_;
};

TEST_F(VolumeFilesTest, AreOneForAllContainersAndNoContainers) {
  const auto first = Make();
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(write(first->front().get(), "x", 1), 1);
  const auto second = Make();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(lseek(second->front().get(), 0, SEEK_END), 1) << "the same file";
  EXPECT_THAT(FilestorePaths(spec_, "p1"), IsEmpty()) << "no container removes it";
  EXPECT_THAT(VolumeFiles(spec_.volumes, "p1"), ElementsAre(file_));
}

TEST_F(VolumeFilesTest, AreNotWhatSomebodyElseHasPutThere) {
  const std::string other = folder_.path() + "/other";
  std::ofstream(other) << "text";
  fs::create_symlink(other, file_);
  EXPECT_FALSE(Make()) << "a link";
  fs::remove(file_);
  fs::create_hard_link(other, file_);
  EXPECT_EQ(Make().error().code, Code::kFailedPrecondition) << "a name of another file";
  fs::remove(file_);
  fs::create_directory(file_);
  EXPECT_FALSE(Make()) << "a directory";
}

}  // namespace
}  // namespace gantry::gvisor
