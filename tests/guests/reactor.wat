;; SPDX-License-Identifier: Apache-2.0
;; Functions by name; each exits with what `_initialize` left: 40, and its own.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (global $ready (mut i32) (i32.const 0))
  (func (export "_initialize") (global.set $ready (i32.const 40)))
  (func (export "one") (call $exit (i32.add (global.get $ready) (i32.const 1))))
  (func (export "two") (result i32) (i32.add (global.get $ready) (i32.const 2)))
  (func (export "high") (result i32) (i32.const 0x1c8))
  (func (export "silent"))
  (func (export "wants") (param i32)))
