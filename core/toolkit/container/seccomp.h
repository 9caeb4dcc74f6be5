// SPDX-License-Identifier: Apache-2.0
//
// `linux.seccomp` as a program of the kernel. It is compiled by the maker, where a mistake is an
// error and nothing has been made yet, and loaded by the child just before it executes.
// Source: seccomp(2); libseccomp 2.5 and later, which knows the system calls.
#pragma once

#include <linux/filter.h>

#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>
#include <gantry/unique_fd.h>

namespace gantry::container {

struct SeccompFilter {
  std::vector<sock_filter> program;
  /// SECCOMP_FILTER_FLAG_*.
  unsigned flags = 0;
  /// Some system calls are asked of a listener.
  bool notifies = false;
  /// System calls that this libseccomp does not know: left out, since the kernel of who wrote the
  /// profile may be newer. They get the default action.
  std::vector<std::string> unknown;
};

/// Errors: kInvalidArgument: a word that libseccomp does not know, with its place in `linux`; a
/// listener that cannot work: it would be asked about the system call that hands it over.
Result<SeccompFilter> CompileSeccomp(const oci::Seccomp& spec);

/// Of the calling thread and all that it executes. Needs CAP_SYS_ADMIN in its user namespace, or
/// no_new_privs. The listener where there is one. `whose` it is: for errors.
Result<UniqueFd> LoadSeccomp(const SeccompFilter& filter, std::string_view whose = "linux.seccomp");

}  // namespace gantry::container
