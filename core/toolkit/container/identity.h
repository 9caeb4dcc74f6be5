// SPDX-License-Identifier: Apache-2.0
//
// Who the process is, and what it may: user, groups, umask, capabilities, no_new_privs, labels.
// Source: credentials(7), capabilities(7), prctl(2).
#pragma once

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::container {

/// The AppArmor profile and the SELinux label of what is executed next. `proc`: the maker's.
/// Errors: kFailedPrecondition: the kernel has no such security module, or it is off.
Status SetLabels(int proc, const oci::ProcessSpec& process);

/// The same of the calling process, from now on.
Status ChangeLabels(int proc, const oci::ProcessSpec& process);

/// What `process` has, of the capabilities that this kernel knows. Absent: none at all, as runc has
/// it; who wants more says so.
oci::Capabilities CapabilitiesOf(const oci::ProcessSpec& process);

/// All others than `bounding` are dropped from the bounding set: no program of the process will
/// ever have them.
Status DropBounding(uint64_t bounding);

/// Groups, user and umask; permitted capabilities stay. Nobody may look into the process, as
/// before.
Status BecomeUser(const oci::User& user);

/// The effective, permitted and inheritable set. `kept`: a mask of what it has effective and
/// permitted beside, until it executes a program. Errors: kPermissionDenied: more than the maker
/// has.
Status SetCapabilities(const oci::Capabilities& sets, uint64_t kept);

/// The ambient set.
Status SetAmbient(uint64_t ambient);

Status SetNoNewPrivileges();

/// What execve(2) does: a later change of the user would take all capabilities away again.
Status ForgetKeptCapabilities();

}  // namespace gantry::container
