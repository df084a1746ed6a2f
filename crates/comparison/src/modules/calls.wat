;; Asks for the time, again and again: what one call out of a module costs.
(module
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $left i32)
    (local.set $left (i32.const 200000))
    (loop $again
      (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 8)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left)))))
