;; SPDX-License-Identifier: Apache-2.0
;; WasmEdge's look-up of names: exits with 0 where there is an address of "here", else with the
;; errno of that.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "sock_getaddrinfo"
    (func $lookup (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "here\00")
  (data (i32.const 24) "http\00")
  ;; Of the answer, 28 bytes at 256: its address is at 320, a name of 64 bytes may be at 400.
  (data (i32.const 200) "\00\01\00\00")
  (data (i32.const 268) "\40\01\00\00\90\01\00\00\40\00\00\00")
  ;; 28 bytes at 352 for what the address holds.
  (data (i32.const 324) "\1c\00\00\00\60\01\00\00")
  (func (export "_start")
    (call $exit
      (call $lookup
        (i32.const 16) (i32.const 4) (i32.const 24) (i32.const 4) (i32.const 128) (i32.const 200)
        (i32.const 1) (i32.const 208)))))
