// SPDX-License-Identifier: Apache-2.0
//
// A bundle with busybox in its root, whose container is made by the library or by another runtime.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/container/make.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::container {

/// What config.json has beside the least that is demanded: members, without the braces.
struct Config {
  std::string process{};
  std::string linux_part{};
  std::string top{};
  /// Run by busybox's shell, as the container's init.
  std::string script{};
  /// In place of those that the tests need: pid, mount, uts, ipc.
  std::string namespaces{};
  std::string cwd = "/";
  /// Of more than /proc.
  std::string mounts{};
  std::string user = R"({"uid": 0, "gid": 0})";
};

class Bundle {
 public:
  Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;
  ~Bundle();

  const std::string& path() const { return path_; }

  std::string InRoot(const std::string& path) const { return path_ + "/rootfs" + path; }

  /// The `process` object alone, and config.json.
  static std::string ProcessOf(const Config& config);
  static std::string TextOf(const Config& config);
  Result<MakeRequest> RequestOf(const Config& config) const;

  /// All that the container writes to its outputs, and how it ends; or `CODE: message`.
  std::string Run(const Config& config) const;
  /// The same by `runtime`, a program that is called as runc is.
  std::string RunBy(const std::string& runtime, const Config& config) const;

 private:
  std::string path_;
};

/// Reads to the end.
std::string Drain(int fd);

/// `exit N` or `signal N`.
std::string EndOf(pid_t pid);

}  // namespace gantry::container
