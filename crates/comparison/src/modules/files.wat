;; Writes 64 MiB into a file of the workspace, and reads it again.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_seek" (func $seek (param i32 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 32)
  (data (i32.const 0) "bench.dat")
  (func $each (param $write i32) (param $fd i32) (local $left i32) (local $moved i32)
    (local.set $left (i32.const 67108864))
    (loop $again
      (i32.store (i32.const 32) (i32.const 65536))
      (i32.store (i32.const 36) (i32.const 1048576))
      (if (local.get $write)
        (then (if (call $write (local.get $fd) (i32.const 32) (i32.const 1) (i32.const 48)) (then (call $exit (i32.const 2)))))
        (else (if (call $read (local.get $fd) (i32.const 32) (i32.const 1) (i32.const 48)) (then (call $exit (i32.const 3))))))
      (local.set $moved (i32.load (i32.const 48)))
      (if (i32.eqz (local.get $moved)) (then (call $exit (i32.const 4))))
      (local.set $left (i32.sub (local.get $left) (local.get $moved)))
      (br_if $again (i32.gt_s (local.get $left) (i32.const 0)))))
  (func (export "_start") (local $fd i32)
    ;; Which of the folders can be written to is not known: the first that can.
    (local.set $fd (i32.const 3))
    (block $opened
      (loop $next
        (br_if $opened (i32.eqz (call $open
          (local.get $fd) (i32.const 1) (i32.const 0) (i32.const 9) (i32.const 9)
          (i64.const 0x46) (i64.const 0x46) (i32.const 0) (i32.const 16))))
        (local.set $fd (i32.add (local.get $fd) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $fd) (i32.const 32))))
      (call $exit (i32.const 1)))
    (local.set $fd (i32.load (i32.const 16)))
    (call $each (i32.const 1) (local.get $fd))
    (drop (call $seek (local.get $fd) (i64.const 0) (i32.const 0) (i32.const 48)))
    (call $each (i32.const 0) (local.get $fd))))
