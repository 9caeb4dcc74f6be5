// SPDX-License-Identifier: Apache-2.0
//
// What criu has to be told beyond the OCI runtime's flags, and what it says.
//
// The streams of a container are fifos of containerd's client, outside of the
// container's mounts. criu neither finds such a file when it saves nor opens it when
// it restores, unless it is told that it is external. OCI runtimes tell it so of pipes
// only; this backend does it of fifos by a configuration file of its own, and keeps
// their names in the image, for the container that is restored has others.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/host_process.h>

namespace gantry::runc {

/// criu's names of what a process has as 0, 1 and 2; empty where it is no fifo of the
/// file system's. Source: criu 4.1, files-reg.c, "file[MOUNT:INODE]", both in hex.
using StreamNames = std::array<std::string, 3>;

/// Empty names where the process has gone. Blocks: reads /proc.
StreamNames StreamNamesOf(HostPid pid);

/// Keeps them in an image. Blocks: for a small file.
Status SaveStreams(const std::string& image, const StreamNames& names);
/// An image without has none. Errors: kInvalidArgument: something else is there; an
/// image may be anybody's, and criu's configuration can name programs to run.
Result<StreamNames> ReadStreams(const std::string& image);

enum class CriuVerb { kDump, kRestore };

/// Writes criu's configuration, which its OCI runtime passes on by the environment;
/// gives that environment. The streams of a restored process are 0, 1 and 2 of the
/// runtime's. Source: criu(8), CRIU_CONFIG_FILE.
Result<std::vector<std::string>> ConfigureCriu(CriuVerb verb, const std::string& path,
                                               const StreamNames& names);

/// The flags of the runtime's `checkpoint`.
std::vector<std::string> CheckpointFlags(const CheckpointRequest& request);

/// For criu's logs; crun makes none.
Status MakeWorkDirectory(const std::string& path);

/// Adds to a failure what criu's log says: the OCI runtime names but the file.
Status WithCriusWords(Status status, const std::string& log);

}  // namespace gantry::runc
