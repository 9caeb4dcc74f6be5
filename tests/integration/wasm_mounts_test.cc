// SPDX-License-Identifier: Apache-2.0
//
// A guest on a node with very many mounts: none of gantry's processes reads their list for each
// mount of the container, nor at all.
#include <sys/mount.h>

#include <filesystem>
#include <sstream>

#include "tests/harness/raw_guest.h"
#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using Json = nlohmann::json;

/// Bytes that a process has read, of whatever it was.
uint64_t BytesReadBy(pid_t pid) {
  std::istringstream lines(ReadText("/proc/" + std::to_string(pid) + "/io"));
  std::string name;
  uint64_t bytes = 0;
  lines >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

/// Mounts of the node's; gone with this, in one step.
class ManyMounts {
 public:
  ManyMounts(const std::string& folder, int count) : folder_(folder) {
    std::filesystem::create_directories(folder_);
    EXPECT_EQ(mount("tmpfs", folder_.c_str(), "tmpfs", 0, nullptr), 0);
    // Nobody else's mount namespace gets them.
    EXPECT_EQ(mount(nullptr, folder_.c_str(), nullptr, MS_PRIVATE, nullptr), 0);
    for (int i = 0; i < count; ++i) {
      const std::string point = folder_ + "/" + std::to_string(i);
      std::filesystem::create_directory(point);
      EXPECT_EQ(mount(point.c_str(), point.c_str(), nullptr, MS_BIND, nullptr), 0);
    }
  }

  ManyMounts(const ManyMounts&) = delete;
  ManyMounts& operator=(const ManyMounts&) = delete;

  ~ManyMounts() {
    EXPECT_EQ(umount2(folder_.c_str(), MNT_DETACH), 0);
    std::filesystem::remove(folder_);
  }

 private:
  std::string folder_;
};

class WasmMounts : public WasmTest {
 protected:
  /// What engine, keeper and the guest's own process have read for a Create with ten mounts.
  uint64_t BytesOfACreate(const std::string& suffix) {
    Json mounts = Json::array({{{"destination", "/guests"},
                                {"type", "bind"},
                                {"source", settings().guests},
                                {"options", {"rbind", "ro"}}}});
    for (int i = 1; i < 10; ++i) {
      mounts.push_back(
          {{"destination", "/m" + std::to_string(i)}, {"type", "tmpfs"}, {"source", "tmpfs"}});
    }
    RawGuest guest(node(), Id(suffix), Tool({"sleep", "1000000"}), {{"mounts", mounts}});
    const pid_t engine = node().Engine().pid;
    const pid_t keeper = node().Keeper().pid;
    const uint64_t before = BytesReadBy(engine) + BytesReadBy(keeper);
    const Status created = guest.Create();
    EXPECT_TRUE(created) << created.error_or(Error{}).message;
    const uint64_t read = BytesReadBy(engine) + BytesReadBy(keeper) - before;
    const auto state = guest.State();
    const uint64_t by_guest = state ? BytesReadBy(state->pid) : 0;
    EXPECT_TRUE(guest.Finish());
    return read + by_guest;
  }
};

TEST_F(WasmMounts, OfTheNodeAreNotReadForACreate) {
  constexpr int kMany = 5000;
  BytesOfACreate("-first");
  const uint64_t few = BytesOfACreate("-few");
  const ManyMounts mounts(settings().root + "/many", kMany);
  const size_t list = ReadText("/proc/self/mountinfo").size();
  ASSERT_GT(list, size_t{kMany} * 40);
  const uint64_t many = BytesOfACreate("-many");
  EXPECT_LT(many, few + list / 2) << "their list has " << list << " bytes";
}

}  // namespace
}  // namespace gantry::e2e
