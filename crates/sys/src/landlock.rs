//! The version of Landlock this kernel has; the rules themselves are the `landlock` crate's.

/// Zero where the kernel has none or it is switched off.
pub fn abi() -> i32 {
    const GET_VERSION: libc::c_uint = 1;
    // SAFETY: a null attribute of size zero with this flag only asks for the version.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0, GET_VERSION) };
    version.max(0) as i32
}
