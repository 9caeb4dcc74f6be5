// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/gvisor/fakes.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::gvisor {

std::string FakeRunsc::WriteTo(const std::string& directory) const {
  std::string boot_flags =
      "--bundle --gofer-mount-confs --io-fds --mounts-fd --start-sync-fd --controller-fd "
      "--spec-fd --stdio-fds";
  constexpr const char* kGofer = "--bundle --gofer-mount-confs --spec-fd --mounts-fd --io-fds";
  constexpr const char* kGlobal = "--network --platform --root";
  if (!lacks.empty()) {
    boot_flags.replace(boot_flags.find(lacks), lacks.size(), "");
  }
  const std::string path = directory + "/runsc";
  std::ofstream(path) << Format(R"SH(#!/bin/sh
all="$*"
fd() {{ for one in $all; do case $one in --$1=*) echo "${{one#*=}}";; esac; done; }}
say() {{ echo "$2" >>/proc/self/fd/$(fd "$1"); }}
case " $all " in
*" --version "*) echo "runsc version {}";;
*" help boot "*) echo "{}";;
*" help gofer "*) echo "{}";;
*" flags "*) echo "{}" >&2;;
*" boot "*) {};;
*" gofer "*) {};;
esac
)SH",
                                version, lists_flags ? boot_flags : "", lists_flags ? kGofer : "",
                                lists_flags ? kGlobal : "", boot, gofer);
  constexpr mode_t kMode = 0755;
  chmod(path.c_str(), kMode);
  return path;
}

void FakeRunsc::WriteAsSidecar(const std::string& directory) const {
  const std::string folder = directory + "/gvisor-bin";
  std::filesystem::create_directory(folder);
  std::filesystem::rename(WriteTo(folder), folder + "/gvisor_sentry");
}

std::optional<std::string> RealRunsc(const std::string& release) {
  // Nothing in the tests changes the environment.
  const char* const cache = std::getenv("GANTRY_CACHE");
  const char* const home = std::getenv("HOME");
  const std::string folder =
      cache != nullptr ? cache : std::string(home != nullptr ? home : "/root") + "/.cache/gantry";
  const std::string path = Format("{}/runsc/{}/bin/runsc", folder, release);
  return IsExecutable(path) ? std::optional(path) : std::nullopt;
}

}  // namespace gantry::gvisor
