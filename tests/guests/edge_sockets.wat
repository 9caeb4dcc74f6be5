;; SPDX-License-Identifier: Apache-2.0
;; WasmEdge's sockets: listens at a free port of 127.0.0.1, connects to itself and sends a word
;; through. Exits with 0, with the errno of what fails, or with 99 where another word arrives.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "sock_open" (func $open (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_bind" (func $bind (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_listen" (func $listen (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_getlocaladdr"
    (func $local (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_connect" (func $connect (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_send"
    (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_recv"
    (func $recv (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  ;; An address: where its bytes are, and how many.
  (data (i32.const 16) "\20\00\00\00\04\00\00\00")
  (data (i32.const 32) "\7f\00\00\01")
  ;; What is sent, and where what comes is put; each as a list of one piece.
  (data (i32.const 48) "\40\00\00\00\04\00\00\00")
  (data (i32.const 64) "word")
  (data (i32.const 80) "\60\00\00\00\04\00\00\00")
  (func $must (param i32)
    (if (local.get 0) (then (call $exit (local.get 0)))))
  (func (export "_start")
    (call $must (call $open (i32.const 1) (i32.const 2) (i32.const 112)))
    (call $must (call $bind (i32.load (i32.const 112)) (i32.const 16) (i32.const 0)))
    (call $must (call $listen (i32.load (i32.const 112)) (i32.const 1)))
    (call $must
      (call $local (i32.load (i32.const 112)) (i32.const 16) (i32.const 124) (i32.const 128)))
    (call $must (call $open (i32.const 1) (i32.const 2) (i32.const 116)))
    (call $must
      (call $connect (i32.load (i32.const 116)) (i32.const 16) (i32.load (i32.const 128))))
    (call $must (call $accept (i32.load (i32.const 112)) (i32.const 120)))
    (call $must
      (call $send
        (i32.load (i32.const 116)) (i32.const 48) (i32.const 1) (i32.const 0) (i32.const 132)))
    (call $must
      (call $recv
        (i32.load (i32.const 120)) (i32.const 80) (i32.const 1) (i32.const 0) (i32.const 132)
        (i32.const 136)))
    (if (i32.ne (i32.load (i32.const 64)) (i32.load (i32.const 96)))
      (then (call $exit (i32.const 99))))))
