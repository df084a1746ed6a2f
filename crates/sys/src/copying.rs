//! `memcpy`, `memmove` and `memcmp` for the released programs, against musl.
//!
//! musl copies by an instruction that takes thirty cycles to begin, and what is left over byte by byte; it compares byte by byte.
//! Nearly all that we copy and compare are names and words of a few dozen bytes: a fifteenth of all our processor time went into that.
//! Here whatever has up to 128 bytes is read into registers, and then written: so for these it makes no difference whether the two
//! places overlap. Not in builds without optimisation: there, what looks like registers is copied by `memcpy`.

use std::arch::asm;
use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};
use std::ffi::{c_int, c_void};

/// As C has it: `count` bytes, of two places that do not overlap.
///
/// # Safety
/// `from` can be read and `to` be written for `count` bytes.
#[cfg_attr(all(target_env = "musl", not(debug_assertions)), unsafe(no_mangle))]
pub unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void {
    // SAFETY: as the caller says.
    unsafe { copy(to.cast(), from.cast(), count) };
    to
}

/// As C has it: `count` bytes, of two places that may overlap.
///
/// # Safety
/// `from` can be read and `to` be written for `count` bytes.
#[cfg_attr(all(target_env = "musl", not(debug_assertions)), unsafe(no_mangle))]
pub unsafe extern "C" fn memmove(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void {
    let behind = (to as usize).wrapping_sub(from as usize);
    // SAFETY: as the caller says. Only what begins within what is read, and after it, must be written from its end.
    unsafe {
        match count > MOST_AT_ONCE && behind < count {
            true => copy_backwards(to.cast(), from.cast(), count),
            false => copy(to.cast(), from.cast(), count),
        }
    }
    to
}

/// As C has it: which of two places is smaller, byte by byte.
///
/// # Safety
/// Both can be read for `count` bytes.
#[cfg_attr(all(target_env = "musl", not(debug_assertions)), unsafe(no_mangle))]
pub unsafe extern "C" fn memcmp(left: *const c_void, right: *const c_void, count: usize) -> c_int {
    // SAFETY: as the caller says.
    unsafe { compare(left.cast(), right.cast(), count) }
}

/// As C has it: 0 where two places are the same.
///
/// # Safety
/// Both can be read for `count` bytes.
#[cfg_attr(all(target_env = "musl", not(debug_assertions)), unsafe(no_mangle))]
pub unsafe extern "C" fn bcmp(left: *const c_void, right: *const c_void, count: usize) -> c_int {
    // SAFETY: as the caller says.
    unsafe { compare(left.cast(), right.cast(), count) }
}

/// What fits into registers.
const MOST_AT_ONCE: usize = 128;

/// From the beginning to the end.
#[inline(always)]
unsafe fn copy(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: each arm reads and writes within `count` bytes, from both ends, and everything before it writes anything.
    unsafe {
        match count {
            0 => {}
            1 => *to = *from,
            2..=3 => ends::<u16>(to, from, count),
            4..=7 => ends::<u32>(to, from, count),
            8..=16 => ends::<u64>(to, from, count),
            17..=32 => blocks::<1>(to, from, count),
            33..=64 => blocks::<2>(to, from, count),
            65..=MOST_AT_ONCE => blocks::<4>(to, from, count),
            _ => words(to, from, count),
        }
    }
}

/// The first and the last `T` of what has at least one, and two at most.
#[inline(always)]
unsafe fn ends<T>(to: *mut u8, from: *const u8, count: usize) {
    let last = count - size_of::<T>();
    // SAFETY: the caller has `count` bytes on both sides, and that is at least one `T`, which is a plain number.
    unsafe {
        let (first, end) = (from.cast::<T>().read_unaligned(), from.add(last).cast::<T>().read_unaligned());
        to.cast::<T>().write_unaligned(first);
        to.add(last).cast::<T>().write_unaligned(end);
    }
}

const BLOCK: usize = size_of::<__m128i>();

/// `EACH` blocks from the beginning and as many up to the end.
#[inline(always)]
unsafe fn blocks<const EACH: usize>(to: *mut u8, from: *const u8, count: usize) {
    let last = count - EACH * BLOCK;
    // SAFETY: the caller has `count` bytes on both sides, which are at least `EACH` blocks.
    unsafe {
        let read = |start: usize| std::array::from_fn(|at| _mm_loadu_si128(from.add(start + at * BLOCK).cast()));
        let (first, end): ([__m128i; EACH], [__m128i; EACH]) = (read(0), read(last));
        for at in 0..EACH {
            _mm_storeu_si128(to.add(at * BLOCK).cast(), first[at]);
            _mm_storeu_si128(to.add(last + at * BLOCK).cast(), end[at]);
        }
    }
}

/// Long ones, by the instruction that is made for them. In assembly: a loop would be taken for a `memcpy`, and call itself.
unsafe fn words(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: the caller has `count` bytes on both sides, which are more than a word. What is left over after whole words is read
    // before anything is written; the direction is forwards, as everybody leaves it.
    unsafe {
        let last = from.add(count - 8).cast::<u64>().read_unaligned();
        asm!(
            "rep movsq",
            inout("rcx") count / 8 => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
        to.add(count - 8).cast::<u64>().write_unaligned(last);
    }
}

/// From the end to the beginning.
unsafe fn copy_backwards(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: the caller has `count` bytes on both sides, which are more than a block. The first block, of which the loop leaves some
    // or nothing, is read before anything is written.
    unsafe {
        let first = _mm_loadu_si128(from.cast());
        asm!(
            "2:",
            "movups {block}, [{from} + {left} - 16]",
            "movups [{to} + {left} - 16], {block}",
            "sub {left}, 16",
            "cmp {left}, 16",
            "jae 2b",
            block = out(xmm_reg) _, left = inout(reg) count => _, from = in(reg) from, to = in(reg) to,
            options(nostack),
        );
        _mm_storeu_si128(to.cast(), first);
    }
}

#[inline(always)]
unsafe fn compare(left: *const u8, right: *const u8, count: usize) -> c_int {
    // SAFETY: all reads are within `count` bytes of both.
    unsafe {
        let mut at = 0;
        while count - at >= 8 {
            let (one, other) = (word(left.add(at)), word(right.add(at)));
            if one != other {
                return order(one, other);
            }
            at += 8;
        }
        if at == count {
            return 0;
        }
        // The last word, of which some was compared already: that was the same.
        if count >= 8 {
            let last = count - 8;
            return order(word(left.add(last)), word(right.add(last)));
        }
        while at < count {
            let (one, other) = (*left.add(at), *right.add(at));
            if one != other {
                return c_int::from(one) - c_int::from(other);
            }
            at += 1;
        }
        0
    }
}

/// The first byte counts most.
#[inline(always)]
unsafe fn word(at: *const u8) -> u64 {
    // SAFETY: the caller has eight bytes there.
    unsafe { u64::from_be(at.cast::<u64>().read_unaligned()) }
}

#[inline(always)]
fn order(one: u64, other: u64) -> c_int {
    c_int::from(one > other) - c_int::from(one < other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No two neighbours alike, and no length that it repeats itself with.
    fn noise(count: usize) -> Vec<u8> {
        (0..count).map(|at| (at * 37 + at / 251) as u8 ^ 0x5a).collect()
    }

    #[test]
    fn whatever_is_copied_arrives_and_nothing_else_changes() {
        for count in (0..300).chain([511, 512, 4095, 4096, 70_001]) {
            for shift in [0, 1, 3, 7, 8, 15] {
                let from = noise(count + shift);
                let mut to = vec![0xee; count + shift + 32];
                // SAFETY: both have so many bytes there.
                unsafe { memcpy(to.as_mut_ptr().add(shift).cast(), from.as_ptr().add(shift).cast(), count) };
                assert!(to[shift..shift + count] == from[shift..], "{count} bytes at {shift}");
                let around = to[..shift].iter().chain(&to[shift + count..]);
                assert!(around.copied().all(|byte| byte == 0xee), "{count} bytes at {shift}");
            }
        }
    }

    #[test]
    fn what_overlaps_arrives_whole() {
        for count in (0..300).chain([1000, 4096]) {
            for apart in [0, 1, 2, 7, 8, 15, 16, 17, 31, 64, 127, 129, 255, 999] {
                let before = noise(count + apart);
                for (to, from) in [(apart, 0), (0, apart)] {
                    let mut place = before.clone();
                    let start = place.as_mut_ptr();
                    // SAFETY: both are within `place`.
                    unsafe { memmove(start.add(to).cast(), start.add(from).cast(), count) };
                    let mut wanted = before.clone();
                    wanted[to..to + count].copy_from_slice(&before[from..from + count]);
                    assert!(place == wanted, "{count} bytes from {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn the_first_byte_that_differs_decides() {
        for count in 0..70 {
            let left = noise(count);
            let said = |right: &[u8]| {
                // SAFETY: both have `count` bytes.
                let both = unsafe { [memcmp, bcmp].map(|of| of(left.as_ptr().cast(), right.as_ptr().cast(), count)) };
                assert_eq!(both[0] == 0, both[1] == 0);
                both[0].signum()
            };
            assert_eq!(said(&left), 0);
            for at in 0..count {
                for (change, wanted) in [(1u8, -1), (255, 1)] {
                    let mut right = left.clone();
                    right[at] = right[at].wrapping_add(change);
                    // Where it began anew at the other end, it is the other way round.
                    let wanted = if (right[at] > left[at]) == (wanted < 0) { wanted } else { -wanted };
                    // What comes after it says the opposite, and is not heard.
                    right[at + 1..].fill(if wanted < 0 { 0 } else { 255 });
                    assert_eq!(said(&right), wanted, "{count} bytes, at {at}");
                }
            }
        }
    }
}
