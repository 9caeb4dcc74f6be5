// SPDX-License-Identifier: Apache-2.0
//
// The same config.json, made real here and by the OCI runtimes that this node has: what a process
// sees of its file system is the same.
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/toolkit/container/container_test.h"

namespace gantry::container {
namespace {

using testing::HasSubstr;

/// What a shell says that runs in the container: mounts, then files, then what can be written.
constexpr const char* kScript = R"(cat /proc/self/mountinfo
echo ---
stat -c '%F %a %u:%g %t:%T %N' / /dev /dev/* /dev/sub/* /dev/pts/ptmx /data /scratch /masked /masked-file \
  /ro /etc /made /made/place 2>&1
for place in / /dev /ro /data /scratch /masked /sys /proc/sys /made/place /copied; do
  touch $place/try 2>/dev/null && echo $place writable || echo $place not
done
cat /masked-file /copied/file
)";

std::string Output(const std::string& command) {
  const auto close = [](FILE* stream) { pclose(stream); };
  const std::unique_ptr<FILE, decltype(close)> stream(popen(command.c_str(), "re"), close);
  std::string all;
  std::array<char, 4096> some{};
  for (size_t n = 0; stream && (n = fread(some.data(), 1, some.size(), stream.get())) > 0;) {
    all.append(some.data(), n);
  }
  return all;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    quoted += letter == '\n'                    ? std::string("\\n")
              : letter == '"' || letter == '\\' ? std::string("\\") + letter
                                                : std::string(1, letter);
  }
  return quoted + "\"";
}

template <class Items, class Text>
std::string List(const Items& items, Text text) {
  std::string list;
  for (const auto& item : items) {
    list += (list.empty() ? "" : ",") + text(item);
  }
  return "[" + list + "]";
}

/// config.json of what is asked for; the process is a shell with the script.
std::string ConfigOf(const RootfsRequest& request) {
  const std::string mounts = List(request.mounts, [](const oci::SpecMount& mount) {
    return Format(R"({{"destination":{},"type":{},"source":{},"options":{}}})",
                  Quoted(mount.destination), Quoted(mount.type), Quoted(mount.source),
                  List(mount.options, Quoted));
  });
  const std::string devices = List(request.settings.devices, [](const oci::Device& device) {
    return Format(
        R"({{"path":{},"type":"{}","major":{},"minor":{},"fileMode":{},"uid":{},"gid":{}}})",
        Quoted(device.path), device.type, device.major, device.minor, device.mode, device.uid,
        device.gid);
  });
  return Format(
      R"({{"ociVersion":"1.0.2","root":{{"path":"rootfs","readonly":{}}},"mounts":{},
"process":{{"cwd":"/","user":{{"uid":0,"gid":0}},"args":["/bin/sh","-c",{}],
"env":["PATH=/bin:/usr/bin"]}},
"linux":{{"namespaces":[{{"type":"pid"}},{{"type":"mount"}},{{"type":"ipc"}},{{"type":"uts"}}],
"maskedPaths":{},"readonlyPaths":{},"devices":{},"rootfsPropagation":{}}}}})",
      request.root.readonly, mounts, Quoted(kScript), List(request.settings.masked_paths, Quoted),
      List(request.settings.readonly_paths, Quoted), devices,
      Quoted(request.settings.rootfs_propagation));
}

/// Of one line of mountinfo what does not depend on who made it: place, options, propagation
/// and type.
std::string Plainly(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> fields;
  for (std::string word; words >> word;) {
    fields.push_back(word);
  }
  std::string plain;
  size_t i = 4;
  for (; i < fields.size() && fields[i] != "-"; ++i) {
    plain += fields[i].substr(0, fields[i].find(':')) + " ";
  }
  return i + 1 < fields.size() ? plain + fields[i + 1] : plain;
}

/// A mask is made of what its maker likes: its behaviour is compared, not its mount.
bool IsMask(const std::string& line, const RootfsRequest& request) {
  return std::ranges::any_of(request.settings.masked_paths,
                             [&](const std::string& path) { return line.starts_with(path + " "); });
}

std::set<std::string> LinesOf(const std::string& said, const RootfsRequest& request) {
  std::set<std::string> lines;
  std::istringstream text(said);
  bool mounts = true;
  for (std::string line; std::getline(text, line);) {
    mounts = mounts && line != "---";
    const std::string plain = mounts ? Plainly(line) : line;
    // Not all of them make the link to the kernel's memory.
    if (!(mounts && IsMask(plain, request)) && !plain.contains("'/dev/core'")) {
      lines.insert(plain);
    }
  }
  return lines;
}

/// The lines that only one of them says.
std::string Difference(const std::set<std::string>& ours, const std::set<std::string>& theirs) {
  std::string difference;
  for (const std::string& line : ours) {
    difference += theirs.contains(line) ? "" : "ours: " + line + "\n";
  }
  for (const std::string& line : theirs) {
    difference += ours.contains(line) ? "" : "theirs: " + line + "\n";
  }
  return difference;
}

struct Peer {
  const char* name;
  const char* command;
};

class SameFilesTest : public ContainerTest {
 protected:
  void SetUp() override {
    ContainerTest::SetUp();
    if (bundle_.empty()) {
      return;
    }
    for (const char* dir :
         {"/masked", "/ro", "/etc", "/data", "/copied", "/scratch", "/made/place"}) {
      MakeDir(dir);
    }
    MakeFile("/masked/file", "secret");
    MakeFile("/masked-file", "secret");
    MakeFile("/copied/file", "copied");
    NodeDir("volume");
    NodeDir("volume/below");
  }

  /// What containers of Docker and containerd have, and more.
  RootfsRequest Usual() const {
    RootfsRequest request = Plain();
    request.mounts.front().options.clear();
    const std::vector<std::string> strict = {"nosuid", "noexec", "nodev"};
    request.mounts.push_back(
        MountOf("/dev/pts", "devpts", "devpts",
                {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}));
    request.mounts.push_back(MountOf("/dev/shm", "tmpfs", "shm",
                                     {"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}));
    request.mounts.push_back(MountOf("/dev/mqueue", "mqueue", "mqueue", strict));
    request.mounts.push_back(
        MountOf("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"}));
    for (const char* path : {"/bin", "/usr", "/lib", "/lib64"}) {
      request.mounts.push_back(Bind(path, path, {"rbind", "ro"}));
    }
    request.settings.masked_paths = {"/masked",    "/masked-file",  "/proc/keys",
                                     "/proc/acpi", "/sys/firmware", "/missing"};
    request.settings.readonly_paths = {"/ro", "/proc/bus", "/proc/sys", "/missing"};
    return request;
  }

  /// What differs between here and there; the lines that only one has.
  static void ExpectSame(const std::string& bundle, const RootfsRequest& request) {
    size_t peers = 0;
    for (const Peer& peer :
         {Peer{"crun", "crun --cgroup-manager=disabled"}, Peer{"runc", "runc"}}) {
      if (Output(Format("command -v {}", peer.name)).empty()) {
        continue;
      }
      std::ofstream(bundle + "/config.json") << ConfigOf(request);
      const std::string theirs =
          Output(Format("{} --root {}/{} run -b {} gantry-peer-{} </dev/null 2>&1", peer.command,
                        bundle, peer.name, bundle, getpid()));
      const std::string ours = InContainer(World::kRoot, request, [] { return Output(kScript); });
      ASSERT_THAT(theirs, HasSubstr("---\n")) << peer.name;
      EXPECT_EQ(Difference(LinesOf(ours, request), LinesOf(theirs, request)), "") << peer.name;
      ++peers;
    }
    if (peers == 0) {
      GTEST_SKIP() << "this node has neither crun nor runc";
    }
  }
};

GANTRY_AS_ROOT(SameFilesTest);

TEST_P(SameFilesTest, AsUsual) { ExpectSame(bundle_, Usual()); }

TEST_P(SameFilesTest, OfAReadOnlyRoot) {
  RootfsRequest request = Usual();
  // In a root that cannot be written no place can be made.
  request.root.readonly = true;
  ExpectSame(bundle_, request);
}

TEST_P(SameFilesTest, OfBindsWithFlags) {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"rbind"},
                                                  {"bind", "ro"},
                                                  {"rbind", "nosuid", "nodev", "noexec"},
                                                  {"bind", "rw", "noatime", "nodiratime"},
                                                  {"rbind", "ro", "rprivate"},
                                                  {"rbind", "rslave"},
                                                  {"rbind", "strictatime"}}) {
    RootfsRequest request = Usual();
    request.mounts.push_back(Bind(bundle_ + "/volume", "/data", options));
    ExpectSame(bundle_, request);
  }
}

TEST_P(SameFilesTest, OfNewFileSystems) {
  RootfsRequest request = Usual();
  request.mounts.push_back(MountOf("/scratch", "tmpfs", "tmpfs", {"size=1m", "nosuid"}));
  request.mounts.push_back(MountOf("/made/place", "tmpfs", "tmpfs", {"ro", "mode=700"}));
  request.mounts.push_back(MountOf("/copied", "tmpfs", "tmpfs", {"tmpcopyup", "nodev"}));
  ExpectSame(bundle_, request);
}

TEST_P(SameFilesTest, OfDevices) {
  RootfsRequest request = Usual();
  oci::Device loop;
  loop.path = "/dev/sub/loop";
  loop.type = 'b';
  loop.major = 7;
  loop.minor = 3;
  loop.mode = 0640;
  loop.uid = 11;
  loop.gid = 22;
  oci::Device full = loop;
  full.path = "/dev/sub/full";
  full.type = 'c';
  full.major = 1;
  full.minor = 7;
  full.mode = 0600;
  request.settings.devices = {loop, full};
  ExpectSame(bundle_, request);
}

TEST_P(SameFilesTest, OfEachPropagation) {
  // What is shared is not the same with crun and with runc.
  for (const char* word : {"private", "rprivate", "slave", "rslave"}) {
    RootfsRequest request = Usual();
    request.settings.rootfs_propagation = word;
    ExpectSame(bundle_, request);
  }
}

}  // namespace
}  // namespace gantry::container
