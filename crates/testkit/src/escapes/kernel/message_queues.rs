//! Takes a message out of queues of the host: System V ones by key and number, and a POSIX one by name.

use std::ffi::CString;
use std::io;

use model::Wall;

use super::shared_memory::key;
use crate::inside::call;
use crate::{Attack, Control};

/// Removed with the field.
struct Queues(i32, CString);

impl Drop for Queues {
    fn drop(&mut self) {
        // SAFETY: removing takes no buffer; the name outlives the call.
        unsafe {
            if libc::msgctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) < 0 || libc::mq_unlink(self.1.as_ptr()) < 0 {
                eprintln!("left behind: message queues {} {:?}", self.0, self.1);
            }
        }
    }
}

const LONGEST: usize = 256;

pub const ATTACK: Attack = Attack {
    id: "kernel/message_queues",
    wall: Wall::Ipc,
    about: "receive from System V and POSIX message queues of the host",
    flags: &[],
    prepare: |field| {
        let key = key(&field.secret);
        let name = format!("/belljar-{}", &field.secret[7..19]);
        let path = CString::new(name.clone())?;
        let mut message = vec![1u8, 0, 0, 0, 0, 0, 0, 0];
        message.extend_from_slice(field.secret.as_bytes());
        // SAFETY: both queues are new; messages and attributes outlive their calls, lengths are theirs.
        unsafe {
            let id = libc::msgget(key, libc::IPC_CREAT | libc::IPC_EXCL | 0o666);
            if id < 0 || libc::msgsnd(id, message.as_ptr().cast(), field.secret.len(), 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            field.tell("id", id);
            let mut attributes: libc::mq_attr = std::mem::zeroed();
            (attributes.mq_maxmsg, attributes.mq_msgsize) = (2, LONGEST as i64);
            let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
            let queue = libc::mq_open(path.as_ptr(), flags, 0o666, &raw mut attributes);
            if queue < 0
                || libc::fchmod(queue, 0o666) < 0
                || libc::mq_send(queue, field.secret.as_ptr().cast(), field.secret.len(), 0) < 0
            {
                return Err(io::Error::last_os_error());
            }
            libc::mq_close(queue);
            field.keep(Queues(id, path));
        }
        field.tell("key", key);
        field.tell("name", name);
        Ok(())
    },
    inside: |inside| {
        let number = |name| inside.hint(name)?.parse::<i32>().map_err(io::Error::other);
        let by_key = call(libc::SYS_msgget, [number("key")? as u64, 0, 0, 0, 0, 0]).map_or(-1, |id| id as i32);
        let mut bytes = [0u8; LONGEST + 8];
        for id in [by_key, number("id")?] {
            let buffer = bytes.as_mut_ptr() as u64;
            let wait = libc::IPC_NOWAIT as u64;
            if let Ok(count) = call(libc::SYS_msgrcv, [id as u64, buffer, LONGEST as u64, 0, wait, 0]) {
                inside.loot(&bytes[8..8 + count as usize])?;
            }
        }
        let name = CString::new(inside.hint("name")?)?;
        // SAFETY: the name and the buffer outlive their calls; the queue does not block.
        unsafe {
            let queue = libc::mq_open(name.as_ptr(), libc::O_RDONLY | libc::O_NONBLOCK);
            if queue < 0 {
                return Err(io::Error::last_os_error());
            }
            let count = libc::mq_receive(queue, bytes.as_mut_ptr().cast(), LONGEST, std::ptr::null_mut());
            if count < 0 {
                return Err(io::Error::last_os_error());
            }
            inside.loot(&bytes[..count as usize])
        }
    },
    judge: None,
    control: Control::Bare,
};
