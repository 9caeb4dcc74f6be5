// SPDX-License-Identifier: Apache-2.0
// The functions of WASI preview 1: each has a test of its name.
// Source: WASI, legacy/preview1/witx/wasi_snapshot_preview1.witx.
#pragma once

#define WASI_FUNCTIONS(X)    \
  X(args_get)                \
  X(args_sizes_get)          \
  X(environ_get)             \
  X(environ_sizes_get)       \
  X(clock_res_get)           \
  X(clock_time_get)          \
  X(fd_advise)               \
  X(fd_allocate)             \
  X(fd_close)                \
  X(fd_datasync)             \
  X(fd_fdstat_get)           \
  X(fd_fdstat_set_flags)     \
  X(fd_fdstat_set_rights)    \
  X(fd_filestat_get)         \
  X(fd_filestat_set_size)    \
  X(fd_filestat_set_times)   \
  X(fd_pread)                \
  X(fd_prestat_get)          \
  X(fd_prestat_dir_name)     \
  X(fd_pwrite)               \
  X(fd_read)                 \
  X(fd_readdir)              \
  X(fd_renumber)             \
  X(fd_seek)                 \
  X(fd_sync)                 \
  X(fd_tell)                 \
  X(fd_write)                \
  X(path_create_directory)   \
  X(path_filestat_get)       \
  X(path_filestat_set_times) \
  X(path_link)               \
  X(path_open)               \
  X(path_readlink)           \
  X(path_remove_directory)   \
  X(path_rename)             \
  X(path_symlink)            \
  X(path_unlink_file)        \
  X(poll_oneoff)             \
  X(proc_exit)               \
  X(proc_raise)              \
  X(sched_yield)             \
  X(random_get)              \
  X(sock_accept)             \
  X(sock_recv)               \
  X(sock_send)               \
  X(sock_shutdown)
