// SPDX-License-Identifier: Apache-2.0
//
// cgroup v2 asks a BPF program of each use of a device.
// Source: Linux 6.18, Documentation/admin-guide/cgroup-v2.rst (device controller), and
// include/uapi/linux/bpf.h (bpf_cgroup_dev_ctx).
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include <gantry/toolkit/cgroup/devices.h>

namespace gantry::cgroup::v2 {
namespace {

constexpr auto kCapabilities = "CAP_BPF and CAP_NET_ADMIN, or CAP_SYS_ADMIN";
constexpr auto kKernel = "Linux 5.1 or later with CONFIG_CGROUP_BPF";
/// As many can be attached to one cgroup.
constexpr size_t kMostPrograms = 64;

constexpr uint8_t kContext = BPF_REG_1;
constexpr uint8_t kType = BPF_REG_2;
/// What is asked for and not allowed yet.
constexpr uint8_t kAsked = BPF_REG_3;
constexpr uint8_t kMajor = BPF_REG_4;
constexpr uint8_t kMinor = BPF_REG_5;

constexpr int32_t kTypeBits = 0xffff;
constexpr int32_t kAccessShift = 16;
constexpr int32_t kAllAccess = BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE;

int32_t AccessOf(const DeviceRule& rule) {
  return (rule.read ? BPF_DEVCG_ACC_READ : 0) | (rule.write ? BPF_DEVCG_ACC_WRITE : 0) |
         (rule.mknod ? BPF_DEVCG_ACC_MKNOD : 0);
}

/// The last rule comes first: what one says of a right is not said again.
void PutRule(bpf::Assembly& to, const DeviceRule& rule) {
  std::vector<bpf::Assembly::Jump> others;
  others.push_back(
      to.JumpUnless(kType, rule.type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR));
  if (rule.major) {
    others.push_back(to.JumpUnless(kMajor, static_cast<int32_t>(*rule.major)));
  }
  if (rule.minor) {
    others.push_back(to.JumpUnless(kMinor, static_cast<int32_t>(*rule.minor)));
  }
  if (rule.allow) {
    to.And(kAsked, kAllAccess & ~AccessOf(rule));
    // On, where more is asked for.
    others.push_back(to.JumpUnless(kAsked, 0));
    to.Return(1);
  } else {
    const auto denied = to.JumpIfAny(kAsked, AccessOf(rule));
    others.push_back(to.Always());
    to.Land(denied);
    to.Return(0);
  }
  to.Land(others);
}

Result<UniqueFd> LoadProgram(const DevicePolicy& policy) {
  UniqueFd program =
      bpf::Load(DeviceProgram(policy), BPF_PROG_TYPE_CGROUP_DEVICE, BPF_CGROUP_DEVICE);
  if (!program) {
    return bpf::FailCall("load a BPF program for devices", kCapabilities, kKernel);
  }
  return program;
}

Result<std::vector<uint32_t>> AttachedTo(const UniqueFd& cgroup) {
  std::array<uint32_t, kMostPrograms> ids{};
  bpf_attr query{};
  query.query.target_fd = static_cast<uint32_t>(cgroup.get());
  query.query.attach_type = BPF_CGROUP_DEVICE;
  query.query.prog_ids = bpf::PointerIn(ids.data());
  query.query.prog_cnt = ids.size();
  if (bpf::Call(BPF_PROG_QUERY, query) != 0) {
    return bpf::FailCall("ask for the BPF programs of a cgroup", kCapabilities, kKernel);
  }
  const auto used = std::span(ids).first(query.query.prog_cnt);
  return std::vector<uint32_t>(used.begin(), used.end());
}

/// Cgroups below may have programs of their own; all must allow it then.
Status Attach(const UniqueFd& cgroup, const UniqueFd& program) {
  bpf_attr attach{};
  attach.target_fd = static_cast<uint32_t>(cgroup.get());
  attach.attach_bpf_fd = static_cast<uint32_t>(program.get());
  attach.attach_type = BPF_CGROUP_DEVICE;
  attach.attach_flags = BPF_F_ALLOW_MULTI;
  if (bpf::Call(BPF_PROG_ATTACH, attach) != 0) {
    return bpf::FailCall("attach a BPF program for devices", kCapabilities, kKernel);
  }
  return {};
}

Status Detach(const UniqueFd& cgroup, uint32_t id) {
  bpf_attr open{};
  open.prog_id = id;
  const UniqueFd program(bpf::Call(BPF_PROG_GET_FD_BY_ID, open));
  bpf_attr detach{};
  detach.target_fd = static_cast<uint32_t>(cgroup.get());
  detach.attach_bpf_fd = static_cast<uint32_t>(program.get());
  detach.attach_type = BPF_CGROUP_DEVICE;
  // Somebody else may have been faster.
  if ((!program || bpf::Call(BPF_PROG_DETACH, detach) != 0) && errno != ENOENT) {
    return bpf::FailCall("detach a BPF program for devices", kCapabilities, kKernel);
  }
  return {};
}

}  // namespace

bpf::Assembly DeviceProgram(const DevicePolicy& policy) {
  bpf::Assembly to;
  to.Load(kType, kContext, offsetof(bpf_cgroup_dev_ctx, access_type));
  to.Move(kAsked, kType);
  to.ShiftRight(kAsked, kAccessShift);
  to.And(kType, kTypeBits);
  to.Load(kMajor, kContext, offsetof(bpf_cgroup_dev_ctx, major));
  to.Load(kMinor, kContext, offsetof(bpf_cgroup_dev_ctx, minor));
  for (const DeviceRule& rule : policy.rules | std::views::reverse) {
    PutRule(to, rule);
  }
  to.Return(policy.allow_others ? 1 : 0);
  return to;
}

Status LimitDevices(const std::string& dir, const DevicePolicy& policy) {
  const UniqueFd cgroup(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct statfs system{};
  if (!cgroup || fstatfs(cgroup.get(), &system) != 0) {
    return FailErrno(errno, "open cgroup '{}'", dir);
  }
  if (system.f_type != CGROUP2_SUPER_MAGIC) {
    // A tree of files (CgroupHierarchy::At): no process can be in it.
    return {};
  }
  GANTRY_TRY(const std::vector<uint32_t> before, AttachedTo(cgroup));
  if (!policy.AllowsAll()) {
    GANTRY_TRY(const UniqueFd program, LoadProgram(policy));
    GANTRY_CHECK_OK(Attach(cgroup, program));
  }
  for (const uint32_t id : before) {
    GANTRY_CHECK_OK(Detach(cgroup, id));
  }
  return {};
}

}  // namespace gantry::cgroup::v2
