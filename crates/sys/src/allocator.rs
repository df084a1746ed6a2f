//! Memory for the released programs, against musl.
//!
//! musl's own allocator gives every few pages back to the kernel and asks for them again: a tenth of all calls of a start. This
//! is `dlmalloc` behind the standard library's mutex, which is an atomic exchange where nobody else wants it, and never allocates
//! on Linux. `dlmalloc`'s own way to be global takes musl's mutex instead, which took a tenth of our own time in a start.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use dlmalloc::Dlmalloc;

pub struct Allocator {
    heap: Mutex<Heap>,
}

struct Heap(Dlmalloc<Pages>);

// SAFETY: its pointers are to memory of the whole process, which no thread owns more than another.
unsafe impl Send for Heap {}

impl Allocator {
    #[expect(clippy::new_without_default, reason = "there is one, and it is a static")]
    pub const fn new() -> Allocator {
        Allocator { heap: Mutex::new(Heap(Dlmalloc::new_with_allocator(Pages { begun: AtomicBool::new(false) }))) }
    }

    /// `work` calls nothing that allocates.
    #[inline]
    fn locked<T>(&self, work: impl FnOnce(&mut Dlmalloc<Pages>) -> T) -> T {
        work(&mut self.heap.lock().unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Where the heap gets its memory: from the kernel, and what it is about to use with all pages there. Asked for one by one, each of
/// them costs more than all of them together.
struct Pages {
    /// Of its first memory little is used before the first fork, which shares all that is there.
    begun: AtomicBool,
}

/// So much is there at once when the heap grows, which is what it asks for unless it is for one large block, of which most is often not
/// touched.
const STRIDE: usize = 64 << 10;

// SAFETY: what is handed out is a new private mapping of that size, what is given back is unmapped, and what is resized is resized
// by the kernel.
unsafe impl dlmalloc::Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let begun = self.begun.swap(true, Ordering::Relaxed);
        let populate = if begun && size <= STRIDE { libc::MAP_POPULATE } else { 0 };
        let flags = libc::MAP_ANON | libc::MAP_PRIVATE | populate;
        // SAFETY: a new private mapping at an address of the kernel's choice touches no memory of ours.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if mapped == libc::MAP_FAILED { (ptr::null_mut(), 0, 0) } else { (mapped.cast(), size, 0) }
    }

    fn remap(&self, block: *mut u8, before: usize, after: usize, can_move: bool) -> *mut u8 {
        let flags = if can_move { libc::MREMAP_MAYMOVE } else { 0 };
        // SAFETY: the heap owns the mapping, and expects it where we say it is then.
        let moved = unsafe { libc::mremap(block.cast(), before, after, flags) };
        if moved == libc::MAP_FAILED { ptr::null_mut() } else { moved.cast() }
    }

    fn free_part(&self, block: *mut u8, before: usize, after: usize) -> bool {
        // SAFETY: the heap has no more use for what is beyond `after`.
        unsafe { libc::munmap(block.add(after).cast(), before - after) == 0 }
    }

    fn free(&self, block: *mut u8, size: usize) -> bool {
        // SAFETY: the heap has no more use for it.
        unsafe { libc::munmap(block.cast(), size) == 0 }
    }

    fn can_release_part(&self, _: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
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
