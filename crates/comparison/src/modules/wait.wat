;; Reads its input to the end: a sandbox that is there and does nothing.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "here\n")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 100))
    (i32.store (i32.const 4) (i32.const 5))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
    (i32.store (i32.const 0) (i32.const 200))
    (i32.store (i32.const 4) (i32.const 1))
    (loop $again
      (i32.store (i32.const 16) (i32.const 0))
      (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
      (br_if $again (i32.load (i32.const 16))))))
