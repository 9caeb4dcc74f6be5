// SPDX-License-Identifier: Apache-2.0
//
// What a guest gets of a mount, with files of each kind: real ones.
#include "plugins/vmm/storage/choice.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

class MountChoice : public testing::Test {
 protected:
  std::string In(const std::string& name) const { return folder_.path() + "/" + name; }

  static oci::SpecMount BindOf(std::string source, std::vector<std::string> options = {"rbind"}) {
    return {.destination = "/in/it",
            .type = "bind",
            .source = std::move(source),
            .options = std::move(options),
            .uid_mappings = {},
            .gid_mappings = {}};
  }

  static Result<Way> Choose(const oci::SpecMount& mount) {
    GANTRY_TRY(const Source source, LookAt(mount.source));
    return ChooseWay(mount, source);
  }

  os::TempDir folder_ = os::TempDir::Create().value();
};

TEST_F(MountChoice, DirectoriesAndFilesAreShared) {
  ASSERT_TRUE(WriteFile(In("file"), "x", 0600));
  EXPECT_EQ(Choose(BindOf(folder_.path())).value(), Way::kShared);
  EXPECT_EQ(Choose(BindOf(In("file"))).value(), Way::kShared);
  ASSERT_EQ(::symlink("file", In("link").c_str()), 0);
  const auto source = LookAt(In("link"));
  ASSERT_TRUE(source);
  EXPECT_EQ(source->path, In("file")) << "the file that it leads to";
}

struct Refused {
  const char* name;
  mode_t type;
  const char* words;
};

class RefusedSource : public MountChoice, public testing::WithParamInterface<Refused> {};

TEST_P(RefusedSource, SaysWhatItIsAndWhatToDo) {
  const Refused& one = GetParam();
  ASSERT_EQ(::mknod(In(one.name).c_str(), one.type | 0600, makedev(7, 200)), 0);
  const auto way = Choose(BindOf(In(one.name)));
  ASSERT_FALSE(way);
  EXPECT_EQ(way.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(way.error().message, HasSubstr(one.words));
  EXPECT_THAT(way.error().message, HasSubstr("; ")) << "what to do instead";
}

INSTANTIATE_TEST_SUITE_P(All, RefusedSource,
                         testing::Values(Refused{"socket", S_IFSOCK, "a socket of the node"},
                                         Refused{"fifo", S_IFIFO, "a FIFO of the node"},
                                         Refused{"tape", S_IFCHR, "a character device of the node"},
                                         Refused{"disk", S_IFBLK, "'volumeDevices'"}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_F(MountChoice, WhatIsNotThereIsTheCallersMistake) {
  for (const char* path : {"/no/such/file", "relative", ""}) {
    EXPECT_EQ(LookAt(path).error().code, Code::kInvalidArgument) << path;
  }
}

TEST_F(MountChoice, MountsForTheNodeAreRefusedAndThoseOfTheNodeFollowed) {
  EXPECT_EQ(Choose(BindOf(folder_.path(), {"rbind", "rslave"})).value(), Way::kShared);
  for (const char* word : {"shared", "rshared"}) {
    const auto way = Choose(BindOf(folder_.path(), {"rbind", word}));
    EXPECT_EQ(way.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(way.error().message, HasSubstr("'Bidirectional'"));
  }
}

TEST_F(MountChoice, SharedMemoryOfThePodIsTheGuests) {
  oci::SpecMount mount = BindOf("/some/shm");
  mount.destination = "/dev/shm";
  Source source;
  source.kind = SourceKind::kDirectory;
  source.path = "/run/containerd/sandboxes/1/shm";
  source.file_system = TMPFS_MAGIC;
  EXPECT_EQ(ChooseWay(mount, source).value(), Way::kMemory);
  source.path = "/dev/shm";
  EXPECT_THAT(ChooseWay(mount, source).error().message, HasSubstr("the node's own shared memory"));
  source.path = "/some/shm";
  source.file_system = EXT4_SUPER_MAGIC;
  EXPECT_EQ(ChooseWay(mount, source).value(), Way::kShared) << "no memory, but files";
  source.file_system = HUGETLBFS_MAGIC;
  mount.destination = "/pages";
  EXPECT_EQ(ChooseWay(mount, source).value(), Way::kHugePages);
}

TEST_F(MountChoice, TheGuestsOwnFileSystemsNeedNoSource) {
  for (const char* type : {"proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup"}) {
    oci::SpecMount mount = BindOf("x", {"nosuid"});
    mount.type = type;
    EXPECT_FALSE(NeedsSource(mount).value()) << type;
  }
  oci::SpecMount mount = BindOf("server:/export", {});
  mount.type = "nfs";
  EXPECT_EQ(NeedsSource(mount).error().code, Code::kFailedPrecondition);
  EXPECT_THAT(NeedsSource(mount).error().message, HasSubstr("'nfs'"));
  mount.type = "ext4";
  EXPECT_TRUE(NeedsSource(mount).value());
  EXPECT_THAT(ChooseWay(mount, LookAt(folder_.path()).value()).error().message,
              HasSubstr("a directory"));
}

// The last word counts, as in mount(8).
TEST_F(MountChoice, WordsOfABind) {
  EXPECT_TRUE(ReadBindWords(BindOf("x", {"bind", "rw", "ro"})).read_only);
  EXPECT_FALSE(ReadBindWords(BindOf("x", {"bind", "rro", "rw"})).read_only);
  EXPECT_FALSE(ReadBindWords(BindOf("x", {"rbind", "bind"})).recursive);
  EXPECT_TRUE(ReadBindWords(BindOf("x", {"rbind"})).recursive);
}

// Another mount of the same directory is another source, and the same one is the same.
TEST_F(MountChoice, ASourceIsKnownByWhatItIs) {
  const std::string first = LookAt(folder_.path())->identity;
  EXPECT_EQ(LookAt(folder_.path() + "/.")->identity, first);
  ASSERT_TRUE(WriteFile(In("file"), "x", 0600));
  EXPECT_NE(LookAt(In("file"))->identity, first);
}

}  // namespace
}  // namespace gantry::vmm
