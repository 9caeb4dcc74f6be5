;; SPDX-License-Identifier: Apache-2.0
;; Answers how many requests this instance has had, which is 1 where each has its own. The
;; path /trap traps before an answer, /late after its beginning.
(module
  (import "wasi:http/types@0.2.0" "[constructor]fields" (func $fields (result i32)))
  (import "wasi:http/types@0.2.0" "[method]incoming-request.path-with-query"
    (func $path (param i32 i32)))
  (import "wasi:http/types@0.2.0" "[constructor]outgoing-response"
    (func $response (param i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-response.body" (func $body (param i32 i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-body.write" (func $stream (param i32 i32)))
  (import "wasi:http/types@0.2.0" "[static]outgoing-body.finish"
    (func $finish (param i32 i32 i32 i32)))
  (import "wasi:http/types@0.2.0" "[static]response-outparam.set"
    (func $set (param i32 i32 i32 i32 i64 i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
    (func $write (param i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.0" "[resource-drop]output-stream" (func $drop (param i32)))
  (memory (export "memory") 2)
  (data (i32.const 1024) "requests: 0\n")
  (global $requests (mut i32) (i32.const 0))
  ;; The host's strings go to the second page.
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536))
  (func (export "wasi:http/incoming-handler@0.2.0#handle") (param $request i32) (param $out i32)
    (local $answer i32) (local $content i32) (local $letter i32) (local $to i32)
    (global.set $requests (i32.add (global.get $requests) (i32.const 1)))
    (i32.store8 (i32.const 1034) (i32.add (i32.const 48) (global.get $requests)))
    (call $path (local.get $request) (i32.const 0))
    ;; The first letter behind the slash.
    (local.set $letter (i32.load8_u (i32.add (i32.load (i32.const 4)) (i32.const 1))))
    (if (i32.eq (local.get $letter) (i32.const 116)) (then unreachable))
    (local.set $answer (call $response (call $fields)))
    (call $body (local.get $answer) (i32.const 16))
    (local.set $content (i32.load (i32.const 20)))
    (call $stream (local.get $content) (i32.const 32))
    (local.set $to (i32.load (i32.const 36)))
    (call $set (local.get $out) (i32.const 0) (local.get $answer) (i32.const 0) (i64.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
    (if (i32.eq (local.get $letter) (i32.const 108)) (then unreachable))
    (call $write (local.get $to) (i32.const 1024) (i32.const 12) (i32.const 48))
    (call $drop (local.get $to))
    (call $finish (local.get $content) (i32.const 0) (i32.const 0) (i32.const 64))))
