//! Finds a key in the session keyring that the caller's session would hand down.

use std::ffi::CString;
use std::io;

use model::Wall;

use crate::inside::call;
use crate::{Attack, Control, Field};

const JOIN: u64 = 1;
const CHOWN: u64 = 4;
const SEARCH: u64 = 10;
const READ: u64 = 11;
const SESSION: u64 = -3i64 as u64;

pub const ATTACK: Attack = Attack {
    id: "kernel/session_key",
    wall: Wall::Inheritance,
    about: "search the caller's session keyring for a key and read it",
    flags: &[],
    prepare: |field| {
        let name = format!("belljar:{}", &field.secret[7..19]);
        field.tell("name", &name);
        add_key(field, &name)
    },
    inside: |inside| {
        let name = CString::new(inside.hint("name")?)?;
        let user = c"user".as_ptr() as u64;
        let found = call(libc::SYS_keyctl, [SEARCH, SESSION, user, name.as_ptr() as u64, 0, 0])
            .or_else(|_| call(libc::SYS_request_key, [user, name.as_ptr() as u64, 0, 0, 0, 0]))?;
        let mut bytes = [0u8; 128];
        let count = call(libc::SYS_keyctl, [READ, found, bytes.as_mut_ptr() as u64, 128, 0, 0])?;
        inside.loot(&bytes[..bytes.len().min(count as usize)])
    },
    judge: None,
    control: Control::Bare,
};

/// Adds a key with the secret to a fresh session keyring of this thread, which those it starts inherit.
pub fn add_key(field: &Field, name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    let (user, secret) = (c"user".as_ptr() as u64, field.secret.as_bytes());
    call(libc::SYS_keyctl, [JOIN, 0, 0, 0, 0, 0])?;
    let key =
        call(libc::SYS_add_key, [user, name.as_ptr() as u64, secret.as_ptr() as u64, secret.len() as u64, SESSION, 0])?;
    let id = u64::from(field.who.user_id());
    call(libc::SYS_keyctl, [CHOWN, key, id, id, 0, 0]).map(drop)
}
