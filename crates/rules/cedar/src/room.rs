//! Room on the stack. Cedar asks how much is left and gives up below 100 KB, which denies. Against musl the answer for the main
//! thread is what its stack has grown to so far, and is remembered from the first time: some 130 KB, of which we have used half.

/// What even the deepest policy that `outline` lets through needs, with what Cedar wants to be left.
const ENOUGH: usize = 512 << 10;

/// Has the stack grow before anybody asks.
#[inline(never)]
pub fn make() {
    if cfg!(target_env = "musl") {
        std::hint::black_box(&mut [0u8; ENOUGH]);
    }
}
