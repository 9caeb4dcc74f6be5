// SPDX-License-Identifier: Apache-2.0
//
// The file system of a container: `root`, `mounts`, and of `linux` the devices, masked and
// read-only paths and the propagation, made real. It is made in five steps, between which the
// maker becomes what the container is:
//
//   Open     as the maker was started: with its rights and its view of the host's files
//            (the maker enters the namespaces: a mount namespace that is the container's alone,
//            and its user namespace, if it has one)
//   Mount    all mounts, devices and links of /dev, onto the root, which nobody sees yet
//   Enter    the root becomes the root of this process and of its mount namespace; the host's
//            files are gone
//            (terminal, host name, sysctls: what needs /proc, /sys and /dev as they are)
//   AttachConsole  where the process has a terminal
//   Seal     masked and read-only paths, read-only mounts and root: nothing is changed after that
//
// What is done in the root is done by descriptors that gantry/toolkit/container/in_root.h finds:
// nothing outside the root is reached by what is in it.
//
// Where runtimes differ, or the specification says nothing:
// - All sources of binds are looked up by `Open`, before anything is mounted. A bind keeps the
//   flags of the mount that it is taken from, but for those that its options name.
// - Mounts on /proc, /sys and /dev, and devices, refuse links on the way to them: what a process
//   trusts to be the kernel's must be where it looks for it. No link leads to a mount in one of
//   the kernel's file systems either.
// - A mount of type `cgroup` shows the cgroups that the maker is in by then, and nothing above
//   them, with a namespace of cgroups or without, in the layout that the node has.
// - Where /dev is bound from elsewhere, nothing is made in it.
//
// Needs: Linux 5.12 (mount_setattr(2)); /proc while `Open` and `Mount` run; CAP_SYS_ADMIN over the
// user namespace of the mount namespace in each step. Works in a program that is static, and in a
// child of clone(2) without other threads. Changes umask and working directory.
// Source: OCI runtime-spec 1.2, config.md and config-linux.md; mount_setattr(2), open_tree(2),
// move_mount(2), fsopen(2), pivot_root(2).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::container {

struct RootfsRequest {
  /// Absolute; what is relative in the spec is relative to it.
  std::string bundle;
  oci::Root root;
  /// Made in this order.
  std::vector<oci::SpecMount> mounts;
  oci::LinuxSpec settings;
  /// The container is in another user namespace than the maker when it calls `Open`: device files
  /// cannot be made there, so those of the host are bound, which must be the ones that are meant.
  bool binds_devices = false;
};

/// How the root becomes the root.
enum class EnterBy {
  /// pivot_root(2): what was the root is detached.
  kPivot,
  /// Where the root is an initramfs, which cannot be left: it lies under the container's root
  /// then. A process with CAP_SYS_ADMIN can look under it; see `SwitchRoot`.
  kMove,
};

/// Thread: one. Blocks: as file systems do. Errors: each names the step, the path in the
/// container and the errno; kInvalidArgument: the spec asks for what cannot be;
/// kUnimplemented: for what is not done here; else as of in_root.h and the errno's. After an error
/// the object is of no use; what was mounted ends with the mount namespace.
class Rootfs {
 public:
  /// Looks up all that the host has to give, and changes nothing. Errors: kNotFound: no root, or no
  /// source of a bind.
  static Result<Rootfs> Open(RootfsRequest request);

  Rootfs(Rootfs&&) noexcept;
  Rootfs& operator=(Rootfs&&) noexcept;
  Rootfs(const Rootfs&) = delete;
  Rootfs& operator=(const Rootfs&) = delete;
  ~Rootfs();

  /// From here on nothing that is mounted in this mount namespace is seen elsewhere, nor the other
  /// way round, but by what is mounted with a propagation of its own.
  Status Mount();

  /// The working directory is the root then. `root()` stays what it is.
  Status Enter(EnterBy by = EnterBy::kPivot);

  /// `terminal`, the end of a pty that the process gets, is /dev/console, too. Owner: the
  /// caller. Errors: it is of no mount that this namespace has: to be opened after `Mount`, in
  /// the root.
  Status AttachConsole(int terminal);

  Status Seal();

  /// The root directory, for in_root.h; this object's.
  int root() const;

 private:
  struct State;
  explicit Rootfs(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What PID 1 of an initramfs does once, before it makes any container: the file system that is
/// mounted at `directory` becomes the root of this mount namespace, so that `EnterBy::kPivot`
/// works from then on; the initramfs lies under it. Working directory: the new root.
Status SwitchRoot(const std::string& directory);

}  // namespace gantry::container
