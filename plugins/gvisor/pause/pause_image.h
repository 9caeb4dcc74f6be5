// SPDX-License-Identifier: Apache-2.0
//
// The root file system of a pod without a pause container, for a sentry that is handed it
// as a descriptor: a file in memory, so that the pod needs no file on the node and no gofer.
#pragma once

#include <span>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::gvisor {

/// The program /pause, built for this machine: pid 1 that reaps, and that ends with status 0
/// on SIGTERM or SIGINT. As another process of its pod, `/pause NAME`, root with CAP_SYS_ADMIN, it
/// gives the pod a host name and ends with status 0 or the errno: how a sandbox that was
/// booted before its pod was known gets the pod's.
std::span<const unsigned char> PauseProgram();

/// An EROFS image with /pause and the four directories that every sentry mounts upon, to be
/// handed to one in place of a gofer's connection, with the mount configuration `erofs:none`
/// (`erofs:memory` does as well). Sealed and open for reading alone: a sentry that was broken
/// into cannot change what others run.
/// Again: another open file of the same bytes, which are there once and stay.
/// Errors: kResourceExhausted, kInternal: no file in memory to be had. Thread: any. Blocks: never.
/// Source: runsc 20240729 and 2026-08, runsc/boot/vfs.go, compileMounts and mountTmp.
Result<UniqueFd> PauseImage();

}  // namespace gantry::gvisor
