;; SPDX-License-Identifier: Apache-2.0
;; Has 4 MiB of memory from the beginning; exits with 5.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 64)
  (func (export "_start") (call $exit (i32.const 5))))
