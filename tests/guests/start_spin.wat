;; SPDX-License-Identifier: Apache-2.0
;; Its start function, which is run while it is brought up, never returns.
(module
  (memory (export "memory") 1)
  (func $spin (loop $again (br $again)))
  (start $spin)
  (func (export "_start")))
