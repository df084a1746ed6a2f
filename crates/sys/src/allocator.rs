//! Memory for the released programs, against musl.
//!
//! musl's own allocator gives every few pages back to the kernel and asks for them again: a tenth of all calls of a start. This
//! is `dlmalloc` behind the standard library's mutex, which is an atomic exchange where nobody else wants it, and never allocates
//! on Linux. `dlmalloc`'s own way to be global takes musl's mutex instead, which took a tenth of our own time in a start.
//!
//! Even so, a start asks for memory three thousand times and gives it back as often, mostly for names and paths, and that was a fifth of
//! its own time. So the first thread, which does all of it, keeps small blocks that it gave back, a few of each size, for the next time
//! that it wants one like that: no exchange, and no list of all that is free. Other threads come and go, and keep none.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
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

/// Sizes of blocks that are kept are multiples of this, and so are their addresses.
const GRAIN: usize = 16;
/// Up to `KINDS * GRAIN` bytes.
const KINDS: usize = 32;
/// Of each size. What is kept is no part of what the heap could join to larger blocks.
const MOST_KEPT: u8 = 24;

/// Blocks that were given back, those of one size in a chain: each begins with the address of the next.
struct Kept {
    /// Nothing is kept before `keep_small_blocks`.
    begun: bool,
    first: [*mut u8; KINDS],
    count: [u8; KINDS],
}

thread_local! {
    // Neither made when it is first used nor dropped: it is there as the thread's memory is.
    static KEPT: UnsafeCell<Kept> =
        const { UnsafeCell::new(Kept { begun: false, first: [ptr::null_mut(); KINDS], count: [0; KINDS] }) };
}

/// For a thread that lives as long as the process: what one that ends has kept is lost.
pub fn keep_small_blocks() {
    with_kept(|kept| kept.begun = true);
}

#[inline]
fn with_kept<T>(work: impl FnOnce(&mut Kept) -> T) -> T {
    // SAFETY: this thread's own, and `work` is one of ours, none of which allocates or comes back here.
    KEPT.with(|kept| work(unsafe { &mut *kept.get() }))
}

/// Which kind of block is kept for this; nothing, if it is too large, or must lie at rounder addresses.
#[inline]
fn kind(layout: Layout) -> Option<usize> {
    let kind = layout.size().wrapping_sub(1) / GRAIN;
    (kind < KINDS && layout.align() <= GRAIN).then_some(kind)
}

/// The size that all blocks of a kind have.
#[inline]
fn size_of_kind(kind: usize) -> usize {
    (kind + 1) * GRAIN
}

impl Kept {
    #[inline]
    fn take(&mut self, kind: usize) -> Option<*mut u8> {
        let block = self.first[kind];
        if block.is_null() {
            return None;
        }
        // SAFETY: a block that is kept is nobody else's, is large enough, and was given the address of the next one by `put`.
        self.first[kind] = unsafe { block.cast::<*mut u8>().read() };
        self.count[kind] -= 1;
        Some(block)
    }

    /// Whether it is kept.
    #[inline]
    fn put(&mut self, kind: usize, block: *mut u8) -> bool {
        if !self.begun || self.count[kind] == MOST_KEPT {
            return false;
        }
        // SAFETY: whoever had it gave it back; it is at least `GRAIN` bytes at a multiple of that.
        unsafe { block.cast::<*mut u8>().write(self.first[kind]) };
        self.first[kind] = block;
        self.count[kind] += 1;
        true
    }
}

// SAFETY: `dlmalloc` keeps what is asked of an allocator; a block of a kind has that kind's whole size, whoever asked for it and with
// whichever layout of the kind, and is either with whoever asked for it, kept by one thread, or the heap's. None unwinds.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(kind) = kind(layout) else {
            // SAFETY: the caller's promises are those of `malloc`.
            return self.locked(|heap| unsafe { heap.malloc(layout.size(), layout.align()) });
        };
        match with_kept(|kept| kept.take(kind)) {
            Some(block) => block,
            // SAFETY: as above.
            None => self.locked(|heap| unsafe { heap.malloc(size_of_kind(kind), GRAIN) }),
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(kind) = kind(layout) else {
            // SAFETY: as above.
            return self.locked(|heap| unsafe { heap.calloc(layout.size(), layout.align()) });
        };
        match with_kept(|kept| kept.take(kind)) {
            Some(block) => {
                // SAFETY: it has the size of its kind, and is ours.
                unsafe { block.write_bytes(0, layout.size()) };
                block
            }
            // SAFETY: as above.
            None => self.locked(|heap| unsafe { heap.calloc(size_of_kind(kind), GRAIN) }),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (size, align) = match kind(layout) {
            Some(kind) if with_kept(|kept| kept.put(kind, block)) => return,
            Some(kind) => (size_of_kind(kind), GRAIN),
            None => (layout.size(), layout.align()),
        };
        // SAFETY: as above; the block is one of ours, and was asked for with these.
        self.locked(|heap| unsafe { heap.free(block, size, align) });
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size is a valid one.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (kind(layout), kind(wanted)) {
            (None, None) => {
                // SAFETY: as above.
                self.locked(|heap| unsafe { heap.realloc(block, layout.size(), layout.align(), size) })
            }
            (from, to) if from == to => block,
            _ => {
                // SAFETY: both are blocks of ours, apart from each other, and as large as is copied.
                unsafe {
                    let moved = self.alloc(wanted);
                    if !moved.is_null() {
                        ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
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
            // Half of them keep what they give back.
            if mark.is_multiple_of(2) {
                keep_small_blocks();
            }
            let mut blocks: Vec<(*mut u8, Layout)> = Vec::new();
            for round in 0..20_000_usize {
                // Most are small, as in life.
                let most = if round % 4 == 0 { 3_000 } else { 600 };
                let size = 1 + (round * 37 + usize::from(mark) * 11) % most;
                let layout = Layout::from_size_align(size, 1 << (round % 6)).expect("a layout");
                // SAFETY: a block is written within its size, and given back once with its own layout.
                unsafe {
                    let block = if round % 3 == 0 { HEAP.alloc_zeroed(layout) } else { HEAP.alloc(layout) };
                    assert!(!block.is_null() && block.align_offset(layout.align()) == 0);
                    assert!(round % 3 != 0 || (0..size).all(|at| block.add(at).read() == 0));
                    block.write_bytes(mark, size);
                    blocks.push((block, layout));
                    if round % 5 == 0
                        && let Some((block, layout)) = blocks.pop()
                    {
                        // Larger, smaller, or hardly another.
                        let size = [layout.size() * 2, layout.size().div_ceil(3), layout.size() + 1][round / 5 % 3];
                        let other = Layout::from_size_align(size, layout.align()).expect("a layout");
                        let block = HEAP.realloc(block, layout, size);
                        let same = layout.size().min(size);
                        assert!((0..same).all(|at| block.add(at).read() == mark));
                        block.add(same).write_bytes(mark, size - same);
                        blocks.push((block, other));
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
