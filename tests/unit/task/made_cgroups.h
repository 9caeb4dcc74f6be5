// SPDX-License-Identifier: Apache-2.0
//
// Containers for which the core makes cgroups, in a tree of files or of the kernel's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/pod/pod_test.h"

namespace gantry::task {

class MadeCgroups : public PodTest {
 protected:
  /// The engine sees that tree; each container is made in cgroups that are made for it.
  void Begin(cgroup::CgroupHierarchy tree) {
    around_.cgroups = std::move(tree);
    RestartEngine();
    backend_.UseContext([this](ContainerContext& context, bool recovered) {
      return recovered ? Status() : MakeIn(context);
    });
  }

  Status MakeIn(ContainerContext& context) {
    GANTRY_TRY(made_, context.MakeCgroups(devices_));
    return {};
  }

  void BeginWithFiles() {
    files_.Put("cgroup.controllers", "pids\n");
    files_.Put("pods/cgroup.controllers", "pids\n");
    Begin(*cgroup::CgroupHierarchy::At(files_.path()));
  }

  /// config.json of an announced container, with that in its `linux`.
  void Specify(const std::string& id, const std::string& on_linux) {
    const std::string spec = R"({"ociVersion":"1.2.0","process":{"args":["/bin/true"],"cwd":"/"},)"
                             R"("root":{"path":"rootfs"},"linux":{)" +
                             on_linux + R"(,"namespaces":[{"type":"pid"},{"type":"mount"}]}})";
    ASSERT_TRUE(ReplaceFile(dir_.path() + "/" + id + "/config.json", spec, 0644));
  }

  void AnnounceIn(const std::string& id, const std::string& path, const std::string& group = "") {
    Announce(id, group);
    Specify(id, R"("cgroupsPath":")" + path + "\"");
  }

  std::string Dir(const std::string& name = "c1") const { return files_.path() + "/pods/" + name; }

  bool IsThere(const std::string& name = "c1") const { return Exists(Dir(name)); }

  std::vector<std::string> ProtectedDirs(uint64_t instance = 1) {
    Settle();
    return keeper_.last_resorts[instance].cgroup_dirs;
  }

  os::FakeCgroupFs files_;
  std::vector<std::string> made_;
  CgroupDevices devices_ = CgroupDevices::kOfSpec;
};

}  // namespace gantry::task
