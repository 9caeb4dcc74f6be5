// SPDX-License-Identifier: Apache-2.0
//
// A program that makes containers, running from a copy of its file that nobody can write. The
// container's program may be a script whose interpreter is /proc/self/exe: the kernel executes the
// maker's own file then, in the container, where its root could open it for writing afterwards.
// Source: CVE-2019-5736; memfd_create(2), fcntl(2), execveat(2).
#pragma once

#include <gantry/error.h>

namespace gantry::container {

/// The calling program goes on from its beginning, in a sealed copy of itself; where it is in one
/// already, nothing happens. To be called before anything else. `argv`, `envp`: as of main().
/// Again: nothing happens. Errors: the errno's; then the program must make no container.
Status RunSealed(char** argv, char** envp);

}  // namespace gantry::container
