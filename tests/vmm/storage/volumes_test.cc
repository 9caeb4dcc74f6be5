// SPDX-License-Identifier: Apache-2.0
//
// Volumes of each kind, in a guest.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/vmm/guest/stream_io.h"
#include "tests/vmm/storage/storage_guest.h"

namespace gantry::vmm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class VolumesInGuest : public StorageInGuest {
 protected:
  /// A tmpfs of the node's, for the time of a test.
  class Memory {
   public:
    explicit Memory(std::string path, const char* options = "size=8m") : path_(std::move(path)) {
      EXPECT_EQ(::mount("tmpfs", path_.c_str(), "tmpfs", 0, options), 0);
    }

    ~Memory() { ::umount2(path_.c_str(), MNT_DETACH); }

    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    const std::string& path() const { return path_; }

   private:
    std::string path_;
  };

  static void Swap(const std::string& link, const std::string& to) {
    std::filesystem::remove(link + ".new");
    std::filesystem::create_symlink(to, link + ".new");
    std::filesystem::rename(link + ".new", link);
  }
};

TEST_F(VolumesInGuest, DirectoriesAndFilesShowTheNodesBytes) {
  const std::string folder = guest_->NewFolder("bind");
  ASSERT_TRUE(WriteFile(folder + "/file", "in a folder\n", 0644));
  ASSERT_TRUE(WriteFile(folder + "/alone", "alone\n", 0644));
  ASSERT_EQ(::chown((folder + "/file").c_str(), 1234, 5678), 0);
  const std::string said = guest_->Say(
      {.script =
           "exec 2>&1; cat /vol/file /etc/alone; stat -c %u:%g /vol/file; echo new >/vol/new; "
           "chown 77 /vol/new; touch /ro/x; cat /ro/file",
       .mounts = BindOf(folder, "/vol") + "," + BindOf(folder + "/alone", "/etc/alone") + "," +
                 BindOf(folder, "/ro", R"("rbind","ro")")});
  EXPECT_THAT(said, AllOf(HasSubstr("in a folder\nalone\n1234:5678\n"),
                          HasSubstr("Read-only file system\nin a folder\n")));
  EXPECT_EQ(ReadFile(folder + "/new", 10).value_or(""), "new\n");
  struct stat info{};
  ASSERT_EQ(::stat((folder + "/new").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 77U);
}

// U7. Each reads again until it sees the new bytes.
TEST_F(VolumesInGuest, SecretsAreUpdatedByRename) {
  const Memory secret(guest_->NewFolder("secret"));
  for (const char* version : {"v1", "v2"}) {
    const std::string data = secret.path() + "/.." + version;
    ASSERT_EQ(::mkdir(data.c_str(), 0755), 0);
    ASSERT_TRUE(WriteFile(data + "/key", std::string(version) + "\n", 0644));
  }
  Swap(secret.path() + "/..data", "..v1");
  std::filesystem::create_symlink("..data/key", secret.path() + "/key");
  auto container = guest_->Create(
      {.script = "cat /secret/key; while grep -q v1 /secret/key; do :; done; cat /secret/key",
       .mounts = BindOf(secret.path(), "/secret", R"("rbind","ro")")});
  ASSERT_TRUE(container) << container.error().message;
  ASSERT_TRUE(guest_->Start(*container));
  EXPECT_EQ(ReadUntil(container->out, "v1"), "v1\n");
  Swap(secret.path() + "/..data", "..v2");
  EXPECT_EQ(ReadStream(container->out), "v2\n");
  const Status gone = guest_->Delete(*container);
  EXPECT_TRUE(gone) << gone.error().message;
}

// Of both kinds: in a folder of the node's, and in its memory. A FIFO has both its ends in the
// guest, in different containers.
TEST_F(VolumesInGuest, EmptyDirsAreOneForAllContainers) {
  const std::string base = "pod/volumes/kubernetes.io~empty-dir/";
  const std::string on_disk = guest_->NewFolder(base + "disk");
  const Memory memory(guest_->NewFolder(base + "memory"));
  for (const std::string& volume : {on_disk, memory.path()}) {
    auto reader = guest_->Create({.script = "mkfifo /v/fifo; echo ready; cat /v/fifo /v/file",
                                  .mounts = BindOf(volume, "/v")});
    ASSERT_TRUE(reader) << reader.error().message;
    ASSERT_TRUE(guest_->Start(*reader));
    EXPECT_EQ(ReadUntil(reader->out, "ready"), "ready\n");
    const std::string writer =
        guest_->Say({.script = "echo file >/w/file; echo through >/w/fifo; ls /w",
                     .mounts = BindOf(volume, "/w")});
    EXPECT_EQ(writer, "fifo\nfile\n");
    EXPECT_EQ(ReadStream(reader->out), "through\nfile\n");
    EXPECT_EQ(ReadFile(volume + "/file", 10).value_or(""), "file\n") << "and the node sees it";
    EXPECT_TRUE(guest_->Delete(*reader));
  }
}

TEST_F(VolumesInGuest, MountsOfTheNodeBelowAVolumeAreSeenAndThoseThatComeLater) {
  const std::string host = guest_->NewFolder("host");
  ASSERT_EQ(::mount(host.c_str(), host.c_str(), nullptr, MS_BIND, nullptr), 0);
  ASSERT_EQ(::mount(nullptr, host.c_str(), nullptr, MS_SHARED, nullptr), 0);
  guest_->NewFolder("host/later");
  {
    const Memory below(guest_->NewFolder("host/below"));
    ASSERT_TRUE(WriteFile(below.path() + "/file", "below\n", 0644));
    auto container = guest_->Create(
        {.script = "cat /h/below/file; while ! cat /h/later/file 2>/dev/null; do :; done",
         .mounts = BindOf(host, "/h", R"("rbind","rslave")")});
    ASSERT_TRUE(container) << container.error().message;
    ASSERT_TRUE(guest_->Start(*container));
    EXPECT_EQ(ReadUntil(container->out, "below"), "below\n");
    const Memory later(host + "/later");
    ASSERT_TRUE(WriteFile(later.path() + "/file", "later\n", 0644));
    EXPECT_EQ(ReadStream(container->out), "later\n");
    const Status gone = guest_->Delete(*container);
    EXPECT_TRUE(gone) << gone.error().message;
  }
  EXPECT_EQ(::umount2(host.c_str(), MNT_DETACH), 0);
}

TEST_F(VolumesInGuest, SharedMemoryIsOneForThePodAndTheGuests) {
  const Memory shm(guest_->NewFolder("shm"));
  ASSERT_TRUE(WriteFile(shm.path() + "/of-the-node", "", 0644));
  auto first = guest_->Create(
      {.script = "echo words >/dev/shm/x; echo done", .mounts = BindOf(shm.path(), "/dev/shm")});
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(guest_->Start(*first));
  EXPECT_EQ(ReadStream(first->out), "done\n");
  EXPECT_EQ(
      guest_->Say({.script = "cat /dev/shm/x; grep -c '/dev/shm tmpfs.*size=8192k' /proc/mounts; "
                             "ls /dev/shm",
                   .mounts = BindOf(shm.path(), "/dev/shm")}),
      "words\n1\nx\n");
  EXPECT_TRUE(guest_->Delete(*first));
  EXPECT_FALSE(Exists(shm.path() + "/x"));
}

TEST_F(VolumesInGuest, HugePagesAreThere) {
  const std::string pages = guest_->NewFolder("pages");
  if (::mount("none", pages.c_str(), "hugetlbfs", 0, "pagesize=2M,mode=0777") != 0) {
    GTEST_SKIP() << "this kernel has no huge pages of 2 MiB: " << ErrnoName(errno);
  }
  const std::string said = guest_->Say(
      {.script = "grep '/pages hugetlbfs' /proc/mounts; grep HugePages_Total /proc/meminfo",
       .mounts = BindOf(pages, "/pages"),
       .linux_more =
           R"(, "resources": {"hugepageLimits": [{"pageSize": "2MB", "limit": 4194304}]})"});
  EXPECT_EQ(::umount2(pages.c_str(), MNT_DETACH), 0);
  EXPECT_THAT(said, AllOf(HasSubstr("pagesize=2M"), HasSubstr("HugePages_Total:       2\n")));
}

// A tenant who can write to a volume from elsewhere changes what is in it while the guest looks: a
// folder, then a link to one of the node's that is no volume. What is there is never shown. The
// guest looks until it has met each of the two names as each of the two.
TEST_F(VolumesInGuest, LinksThatAreSwappedLeadNowhereOnTheNode) {
  const std::string volume = guest_->NewFolder("swapped");
  const std::string outside = guest_->NewFolder("outside");
  ASSERT_TRUE(WriteFile(outside + "/file", "SECRET\n", 0644));
  for (const char* place : {"/real", "/link"}) {
    guest_->NewFolder(std::string("swapped") + place);
  }
  ASSERT_TRUE(WriteFile(volume + "/real/file", "inside\n", 0644));
  std::filesystem::remove(volume + "/link");
  std::filesystem::create_directory_symlink(outside, volume + "/link");
  auto container = guest_->Create(
      {.script =
           "echo ready; i=0; met=; n=; while [ $i -lt 200 ] || [ ${#n} -lt 4 -a $i -lt 20000 ]; do "
           "echo .; i=$((i+1)); for d in real link; do read line </v/$d/file || line=none; "
           "case $met in *$d-$line,*) ;; *) met=$met$d-$line,; n=x$n;; esac; "
           "done; done 2>/dev/null; echo $met; echo end",
       .mounts = BindOf(volume, "/v")});
  ASSERT_TRUE(container) << container.error().message;
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    const UniqueFd dir(::open(volume.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    while (!stop) {
      // With a failure the guest would meet nothing, and say so.
      ::renameat2(dir.get(), "real", dir.get(), "link", RENAME_EXCHANGE);
      std::this_thread::yield();
    }
  });
  const Status started = guest_->Start(*container);
  const std::string said = started ? ReadStream(container->out) : started.error().message;
  stop = true;
  swapper.join();
  EXPECT_THAT(said, AllOf(HasSubstr("ready\n"), HasSubstr("real-inside,"), HasSubstr("link-none,"),
                          HasSubstr("link-inside,"), HasSubstr("real-none,"), HasSubstr("end\n"),
                          Not(HasSubstr("SECRET"))));
  EXPECT_TRUE(guest_->Delete(*container));
}

TEST_F(VolumesInGuest, ASocketOfTheNodeIsRefusedByName) {
  const std::string socket = guest_->NewFolder("sockets") + "/docker.sock";
  const auto listener = ListenUnix(socket);
  ASSERT_TRUE(listener);
  const auto container =
      guest_->Create({.script = "true", .mounts = BindOf(socket, "/var/run/docker.sock")});
  ASSERT_FALSE(container);
  EXPECT_EQ(container.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(container.error().message,
              AllOf(HasSubstr(socket), HasSubstr("'/var/run/docker.sock'")));
}

}  // namespace
}  // namespace gantry::vmm
