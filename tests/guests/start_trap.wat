;; SPDX-License-Identifier: Apache-2.0
;; Its start function, which is run while it is brought up, traps.
(module
  (memory (export "memory") 1)
  (func $bad (unreachable))
  (start $bad)
  (func (export "_start")))
