// SPDX-License-Identifier: Apache-2.0
//
// `hostname`, `domainname` and `linux.sysctl`: of namespaces that are the container's own, never of
// the node.
#pragma once

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

#include "core/toolkit/container/namespaces.h"

namespace gantry::container {

/// All that `spec` names is of a namespace in `namespaces`. Errors: kInvalidArgument, with the name
/// and the namespace that is missing.
Status CheckNames(const oci::Spec& spec, const Namespaces& namespaces);

/// Host name and domain name, where there are any. In the namespace.
Status SetNames(const oci::Spec& spec);

/// In the namespaces; `proc`: the maker's. Errors: with the key and the errno.
Status WriteSysctls(int proc, const oci::LinuxSpec& spec);

}  // namespace gantry::container
