//! Memory for the released programs, against musl.
//!
//! musl's own allocator gives every few pages back to the kernel and asks for them again: a tenth of all calls of a start. This
//! is `dlmalloc` under a lock that is as cheap as one can be: a start takes it some ten thousand times, and nearly all of our
//! processes have one thread. A mutex of the C library, which must know who waits, took a twentieth of a start.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};

use dlmalloc::Dlmalloc;

pub struct Allocator {
    taken: AtomicBool,
    heap: UnsafeCell<Dlmalloc>,
}

// SAFETY: `heap` is only reached by `locked`, by one thread at a time.
unsafe impl Sync for Allocator {}

/// Whoever has it needs it for less than this takes; unless it was stopped in the middle, and then it must get to run.
const LOOKS: u32 = 64;

impl Allocator {
    #[expect(clippy::new_without_default, reason = "there is one, and it is a static")]
    pub const fn new() -> Allocator {
        Allocator { taken: AtomicBool::new(false), heap: UnsafeCell::new(Dlmalloc::new()) }
    }

    #[inline]
    fn locked<T>(&self, work: impl FnOnce(&mut Dlmalloc) -> T) -> T {
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        // SAFETY: whoever has taken it is the only one here, and `work` calls nothing that allocates.
        let made = work(unsafe { &mut *self.heap.get() });
        self.taken.store(false, Ordering::Release);
        made
    }

    #[cold]
    fn wait(&self) {
        let mut looks = 0;
        loop {
            if !self.taken.load(Ordering::Relaxed) && !self.taken.swap(true, Ordering::Acquire) {
                return;
            }
            looks += 1;
            if looks % LOOKS == 0 {
                rustix::thread::sched_yield();
            } else {
                spin_loop();
            }
        }
    }
}

// SAFETY: `dlmalloc` keeps what is asked of an allocator, each call is made with the layout that the block has, and none unwinds.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of `malloc`.
        self.locked(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        self.locked(|heap| unsafe { heap.calloc(layout.size(), layout.align()) })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block is one of ours.
        self.locked(|heap| unsafe { heap.free(block, layout.size(), layout.align()) });
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        self.locked(|heap| unsafe { heap.realloc(block, layout.size(), layout.align(), size) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static HEAP: Allocator = Allocator::new();

    /// Many threads at once: whatever one writes to its blocks is there until it gives them back.
    #[test]
    fn blocks_belong_to_whoever_asked_for_them() {
        let work = |mark: u8| {
            let mut blocks: Vec<(*mut u8, Layout)> = Vec::new();
            for round in 0..20_000_usize {
                let size = 1 + (round * 37 + usize::from(mark) * 11) % 3_000;
                let layout = Layout::from_size_align(size, 1 << (round % 6)).expect("a layout");
                // SAFETY: a block is written within its size, and given back once with its own layout.
                unsafe {
                    let block = if round % 3 == 0 { HEAP.alloc_zeroed(layout) } else { HEAP.alloc(layout) };
                    assert!(!block.is_null() && block.align_offset(layout.align()) == 0);
                    block.write_bytes(mark, size);
                    blocks.push((block, layout));
                    if round % 5 == 0
                        && let Some((block, layout)) = blocks.pop()
                    {
                        let larger = Layout::from_size_align(layout.size() * 2, layout.align()).expect("a layout");
                        let block = HEAP.realloc(block, layout, larger.size());
                        block.add(layout.size()).write_bytes(mark, layout.size());
                        blocks.push((block, larger));
                    }
                    if blocks.len() > 200 {
                        let (block, layout) = blocks.swap_remove(round % 200);
                        assert!((0..layout.size()).all(|at| block.add(at).read() == mark));
                        HEAP.dealloc(block, layout);
                    }
                }
            }
        };
        std::thread::scope(|scope| (1..=4).for_each(|mark| drop(scope.spawn(move || work(mark)))));
    }
}
