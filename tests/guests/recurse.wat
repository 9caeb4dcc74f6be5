;; SPDX-License-Identifier: Apache-2.0
;; Calls itself without an end, and without memory that could be used up before.
(module
  (memory (export "memory") 1)
  (func $down (param i32) (result i32)
    (i32.add (call $down (i32.add (local.get 0) (i32.const 1))) (local.get 0)))
  (func (export "_start") (drop (call $down (i32.const 0)))))
