;; SPDX-License-Identifier: Apache-2.0
;; Exits with what it got: 1 for a socket of TCP, 2 for one of UDP, 4 for a look-up of a name; 8
;; where that of TCP was access-denied, which is EPERM.
(module
  (import "wasi:sockets/tcp-create-socket@0.2.0" "create-tcp-socket" (func $tcp (param i32 i32)))
  (import "wasi:sockets/udp-create-socket@0.2.0" "create-udp-socket" (func $udp (param i32 i32)))
  (import "wasi:sockets/instance-network@0.2.0" "instance-network" (func $network (result i32)))
  (import "wasi:sockets/ip-name-lookup@0.2.0" "resolve-addresses"
    (func $resolve (param i32 i32 i32 i32)))
  (import "wasi:cli/exit@0.2.12" "exit-with-code" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "localhost")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "wasi:cli/run@0.2.12#run") (result i32)
    (call $tcp (i32.const 0) (i32.const 0))
    (call $udp (i32.const 0) (i32.const 16))
    (call $resolve (call $network) (i32.const 64) (i32.const 9) (i32.const 32))
    (call $exit
      (i32.add
        (i32.eqz (i32.load8_u (i32.const 0)))
        (i32.add
          (i32.add
            (i32.shl (i32.eqz (i32.load8_u (i32.const 16))) (i32.const 1))
            (i32.shl (i32.eqz (i32.load8_u (i32.const 32))) (i32.const 2)))
          (i32.shl
            (i32.and
              (i32.eq (i32.load8_u (i32.const 0)) (i32.const 1))
              (i32.eq (i32.load8_u (i32.const 4)) (i32.const 1)))
            (i32.const 3)))))
    (i32.const 0)))
