;; SPDX-License-Identifier: Apache-2.0
;; Exits with more than a code can be: 0x1c8, of which 200 is left.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (call $exit (i32.const 0x1c8))))
