//! Copying and comparing bytes, for the released programs, against musl on x86-64.
//!
//! Compilers turn every move of a value into a call of these. musl's own are written to be small: it copies with `rep movsq`, which
//! takes the processor dozens of cycles to begin, and compares byte by byte. With both a start spent a tenth of its own time there;
//! most of what it moves is shorter than a line of text. Held by the tests below, which try every length, overlap and alignment.

use std::arch::asm;
use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};
use std::cmp::Ordering;
use std::ffi::{c_int, c_void};

/// From here on, the processor's own way to copy is the fastest.
const LONG: usize = 2048;

#[inline(always)]
unsafe fn load(from: *const u8) -> __m128i {
    // SAFETY: the caller has sixteen bytes there to read.
    unsafe { _mm_loadu_si128(from.cast()) }
}

#[inline(always)]
unsafe fn store(to: *mut u8, value: __m128i) {
    // SAFETY: the caller has room for sixteen bytes there.
    unsafe { _mm_storeu_si128(to.cast(), value) }
}

/// Up to 64 bytes. All of it is read before any is written, so it does not matter whether both overlap.
#[inline(always)]
unsafe fn copy_short(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: every access is within the first `count` bytes of both, which the caller has.
    unsafe {
        if count > 32 {
            let (first, second) = (load(from), load(from.add(16)));
            let (third, last) = (load(from.add(count - 32)), load(from.add(count - 16)));
            store(to, first);
            store(to.add(16), second);
            store(to.add(count - 32), third);
            store(to.add(count - 16), last);
        } else if count >= 16 {
            let (first, last) = (load(from), load(from.add(count - 16)));
            store(to, first);
            store(to.add(count - 16), last);
        } else if count >= 8 {
            let first = from.cast::<u64>().read_unaligned();
            let last = from.add(count - 8).cast::<u64>().read_unaligned();
            to.cast::<u64>().write_unaligned(first);
            to.add(count - 8).cast::<u64>().write_unaligned(last);
        } else if count >= 4 {
            let first = from.cast::<u32>().read_unaligned();
            let last = from.add(count - 4).cast::<u32>().read_unaligned();
            to.cast::<u32>().write_unaligned(first);
            to.add(count - 4).cast::<u32>().write_unaligned(last);
        } else if count > 0 {
            let (first, middle, last) = (from.read(), from.add(count / 2).read(), from.add(count - 1).read());
            to.write(first);
            to.add(count / 2).write(middle);
            to.add(count - 1).write(last);
        }
    }
}

/// More than 64 bytes, from the first to the last: where `to` does not begin within `from`.
#[inline(always)]
unsafe fn copy_up(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: `count` bytes are read and written, which the caller has. Steps of 32 are copied as long as more are left than that;
    // the last 32 were read before anything was written, and cover the rest. In assembler, because a compiler could see that such
    // a loop copies bytes, and make a call of this very function out of it.
    unsafe {
        if count >= LONG {
            asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
            return;
        }
        let (before_last, last) = (load(from.add(count - 32)), load(from.add(count - 16)));
        asm!("2:",
            "movups {one}, [{from}]",
            "movups {two}, [{from} + 16]",
            "movups [{to}], {one}",
            "movups [{to} + 16], {two}",
            "add {from}, 32",
            "add {to}, 32",
            "sub {left}, 32",
            "cmp {left}, 32",
            "ja 2b",
            one = out(xmm_reg) _, two = out(xmm_reg) _,
            from = inout(reg) from => _, to = inout(reg) to => _, left = inout(reg) count => _,
            options(nostack));
        store(to.add(count - 32), before_last);
        store(to.add(count - 16), last);
    }
}

/// More than 64 bytes, from the last to the first: where `to` begins within `from`.
#[inline(always)]
unsafe fn copy_down(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: as above, the other way round.
    unsafe {
        let (first, second) = (load(from), load(from.add(16)));
        asm!("2:",
            "movups {one}, [{from} + {left} - 16]",
            "movups {two}, [{from} + {left} - 32]",
            "movups [{to} + {left} - 16], {one}",
            "movups [{to} + {left} - 32], {two}",
            "sub {left}, 32",
            "cmp {left}, 32",
            "ja 2b",
            one = out(xmm_reg) _, two = out(xmm_reg) _,
            from = in(reg) from, to = in(reg) to, left = inout(reg) count => _,
            options(nostack));
        store(to, first);
        store(to.add(16), second);
    }
}

/// As in C: both are `count` bytes long, and do not overlap.
///
/// # Safety
/// As in C.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
pub unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        match count <= 64 {
            true => copy_short(to.cast(), from.cast(), count),
            false => copy_up(to.cast(), from.cast(), count),
        }
    }
    to
}

/// As in C: both are `count` bytes long, and may overlap.
///
/// # Safety
/// As in C.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
pub unsafe extern "C" fn memmove(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void {
    let begins_within = (to as usize).wrapping_sub(from as usize) < count;
    // SAFETY: the caller's promise.
    unsafe {
        match (count <= 64, begins_within) {
            (true, _) => copy_short(to.cast(), from.cast(), count),
            (false, false) => copy_up(to.cast(), from.cast(), count),
            (false, true) => copy_down(to.cast(), from.cast(), count),
        }
    }
    to
}

/// As in C: which of both comes first, by the first byte in which they differ.
///
/// # Safety
/// As in C.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
pub unsafe extern "C" fn memcmp(one: *const c_void, other: *const c_void, count: usize) -> c_int {
    let (one, other) = (one.cast::<u8>(), other.cast::<u8>());
    // SAFETY: every access is within the first `count` bytes of both, which the caller has.
    unsafe {
        if count >= 8 {
            // The last step may look again at what was the same.
            let mut at = 0;
            loop {
                let step = at.min(count - 8);
                let word = |of: *const u8| u64::from_be(of.add(step).cast::<u64>().read_unaligned());
                let (left, right) = (word(one), word(other));
                if left != right {
                    return if left < right { -1 } else { 1 };
                }
                at += 8;
                if at >= count {
                    return 0;
                }
            }
        }
        if count >= 4 {
            let word = |of: *const u8| {
                let half = |at: usize| u64::from(u32::from_be(of.add(at).cast::<u32>().read_unaligned()));
                half(0) << 32 | half(count - 4)
            };
            return match word(one).cmp(&word(other)) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            };
        }
        for at in 0..count {
            let (left, right) = (one.add(at).read(), other.add(at).read());
            if left != right {
                return c_int::from(left) - c_int::from(right);
            }
        }
        0
    }
}

/// As in C: whether both differ.
///
/// # Safety
/// As in C.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
pub unsafe extern "C" fn bcmp(one: *const c_void, other: *const c_void, count: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { memcmp(one, other, count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 4096 + 256;

    fn lengths() -> impl Iterator<Item = usize> {
        (0..=300).chain([511, 512, 513, 1000, LONG - 33, LONG - 1, LONG, LONG + 1, LONG + 31, 4000])
    }

    fn numbered() -> Vec<u8> {
        (0..ROOM).map(|at| (at * 31 + at / 256) as u8).collect()
    }

    /// Byte by byte, as nobody can get it wrong.
    fn plainly(bytes: &mut [u8], to: usize, from: usize, count: usize) {
        let moved: Vec<u8> = (0..count).map(|at| bytes[from + at]).collect();
        moved.into_iter().enumerate().for_each(|(at, byte)| bytes[to + at] = byte);
    }

    #[test]
    fn every_length_and_alignment_is_copied_and_nothing_beside_it() {
        let source = numbered();
        for count in lengths() {
            for (to, from) in (0..17).flat_map(|to| [(to, 0), (0, to), (to, 16 - to)]) {
                let (mut copied, mut wanted) = (vec![0xAA; ROOM], vec![0xAA; ROOM]);
                wanted[to..to + count].iter_mut().zip(&source[from..]).for_each(|(to, from)| *to = *from);
                // SAFETY: both have room for it.
                let told =
                    unsafe { memcpy(copied.as_mut_ptr().add(to).cast(), source.as_ptr().add(from).cast(), count) };
                assert_eq!(told, copied.as_mut_ptr().wrapping_add(to).cast());
                assert!(copied.iter().eq(wanted.iter()), "{count} bytes from {from} to {to}");
            }
        }
    }

    #[test]
    fn what_overlaps_is_moved_whole() {
        for count in lengths() {
            for apart in [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 200] {
                for (to, from) in [(apart, 0), (0, apart), (apart + 3, 3), (3, apart + 3)] {
                    let (mut moved, mut wanted) = (numbered(), numbered());
                    plainly(&mut wanted, to, from, count);
                    let start = moved.as_mut_ptr();
                    // SAFETY: both have room for it.
                    unsafe { memmove(start.add(to).cast(), start.add(from).cast_const().cast(), count) };
                    assert!(moved.iter().eq(wanted.iter()), "{count} bytes from {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn the_first_byte_that_differs_decides() {
        for count in lengths().filter(|count| *count < 600) {
            let one = numbered();
            // SAFETY: both have so many.
            let compared = |other: &[u8], count| unsafe {
                memcmp(one.as_ptr().add(5).cast(), other.as_ptr().add(5).cast(), count)
            };
            assert_eq!(compared(&one, count), 0);
            for at in (0..count).filter(|at| *at < 40 || at + 40 > count) {
                for change in [1_u8, 0x7F, 0x80, 0xFF] {
                    let mut other = one.clone();
                    other[5 + at] = other[5 + at].wrapping_add(change);
                    // What comes after it decides nothing.
                    other[5 + count..].iter_mut().for_each(|byte| *byte = !*byte);
                    if at + 1 < count {
                        other[5 + at + 1] = other[5 + at + 1].wrapping_sub(change);
                    }
                    let wanted = one[5 + at].cmp(&other[5 + at]) as i32;
                    assert_eq!(compared(&other, count).signum(), wanted, "{count} bytes, {at}");
                    assert_eq!(compared(&other, at), 0);
                }
            }
        }
    }
}
