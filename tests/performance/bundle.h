// SPDX-License-Identifier: Apache-2.0
//
// A bundle as containerd makes one: config.json, rootfs, the `log` fifo, and
// beside it the fifos of the container's stdio, held open as a client does.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::bench {

/// The specification that `ctr oci spec` prints, with what differs from
/// container to container filled in. `argv` is the workload.
Result<std::string> ContainerSpec(const std::string& default_spec, const std::string& cgroup,
                                  const std::vector<std::string>& argv);
/// The same for a process that is executed in it.
Result<std::string> ProcessSpec(const std::string& default_spec,
                                const std::vector<std::string>& argv, bool terminal = false);

/// Two fifos and our reading ends. Owner: of the ends and the files.
class Stdio {
 public:
  Stdio() = default;
  Stdio(const Stdio&) = delete;
  Stdio& operator=(const Stdio&) = delete;
  ~Stdio();

  /// `prefix` + "-stdout" and so on.
  Status Make(const std::string& prefix);

  const std::string& out_path() const { return out_path_; }

  const std::string& err_path() const { return err_path_; }

  /// Nonblocking.
  const UniqueFd& out() const { return out_; }

 private:
  std::string out_path_;
  std::string err_path_;
  UniqueFd out_;
  UniqueFd err_;
};

/// Owner: of the folder, which the destructor removes.
class Bundle {
 public:
  Bundle() = default;
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;
  ~Bundle();

  /// Makes `parent`/`id`, and its overlay's folders in `disk`/`id`.
  Status Make(const std::string& parent, const std::string& disk, const std::string& id,
              const std::string& spec);

  const std::string& path() const { return path_; }

  /// Options of the overlay that is its rootfs.
  std::vector<std::string> MountOptions(const std::string& lower) const;

 private:
  std::string path_;
  std::string layers_;
  UniqueFd log_;
};

}  // namespace gantry::bench
