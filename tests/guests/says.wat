;; SPDX-License-Identifier: Apache-2.0
;; Says something before `_start` on its errors, and in it on its output; then it traps.
(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "before _start\n")
  (data (i32.const 96) "in _start\n")
  (func $say (param $to i32) (param $at i32) (param $size i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $size))
    (drop (call $write (local.get $to) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $before (call $say (i32.const 2) (i32.const 64) (i32.const 14)))
  (start $before)
  (func (export "_start")
    (call $say (i32.const 1) (i32.const 96) (i32.const 10))
    unreachable))
