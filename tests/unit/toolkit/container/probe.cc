// SPDX-License-Identifier: Apache-2.0
//
// container_probe BUNDLE: the least that makes a container of a process, in a program that is
// static and has no other thread. Tells what it sees from inside.
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include <gantry/toolkit/container/rootfs.h>

namespace {

gantry::Status Contain(const char* bundle) {
  gantry::container::RootfsRequest request;
  request.bundle = bundle;
  request.root.path = "rootfs";
  request.mounts.emplace_back();
  request.mounts.back().destination = "/dev";
  request.mounts.back().type = "tmpfs";
  request.settings.masked_paths = {"/masked"};
  GANTRY_TRY(auto rootfs, gantry::container::Rootfs::Open(std::move(request)));
  if (unshare(CLONE_NEWNS) != 0) {
    return gantry::FailErrno(errno, "unshare the mount namespace");
  }
  GANTRY_CHECK_OK(rootfs.Mount());
  GANTRY_CHECK_OK(rootfs.Enter());
  return rootfs.Seal();
}

}  // namespace

int main(int argc, char** argv) {
  const gantry::Status contained = Contain(argc > 1 ? argv[1] : "");
  struct stat null{};
  const bool seen = stat("/dev/null", &null) == 0 && S_ISCHR(null.st_mode);
  std::printf("%s %s %s\n", contained ? "contained" : contained.error().message.c_str(),
              seen ? "null" : "no-null", access("/masked/file", F_OK) == 0 ? "seen" : "masked");
  std::fflush(stdout);
  // What a sanitizer does at the end needs files of the node's.
  _exit(contained ? 0 : 1);
}
