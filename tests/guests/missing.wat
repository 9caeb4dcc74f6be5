;; SPDX-License-Identifier: Apache-2.0
;; Wants what nobody has.
(module
  (import "env" "foo" (func $foo))
  (memory (export "memory") 1)
  (func (export "_start") call $foo))
