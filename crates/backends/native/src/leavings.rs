//! What is left of a sandbox when nobody is in it any more: its mounts and its control group. To take them apart takes the kernel as
//! long as to start a program, and there is other work to do: what came of it is yet to be written down and answered. So it goes on beside
//! that where another processor has nothing to do, or is left until the answer was given where others have.
//!
//! Of this process: who ends before that has left nothing, since the kernel closes its descriptors, and a keeper does its work
//! when its ward has ended.

use std::cell::RefCell;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;

use sys::keeper::Keeper;

use crate::groups::Group;

thread_local! {
    // Never dropped: to have that done at the end of a thread takes the C library longer than all of this.
    static LEFT: RefCell<ManuallyDrop<Leavings>> = const { RefCell::new(ManuallyDrop::new(Leavings::NONE)) };
}

struct Leavings {
    when: When,
    list: Vec<Left>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// As soon as the sandbox has ended, and whoever ended it waits for that.
    Now,
    /// At the same time, and `tidy` waits for it.
    Beside,
    /// In `tidy`.
    Later,
}

impl Leavings {
    const NONE: Leavings = Leavings { when: When::Now, list: Vec::new() };
}

/// Something that is to be taken apart.
pub enum Left {
    /// `begun`: its keeper was told to.
    Group {
        group: Group,
        begun: bool,
    },
    /// It was told to.
    Keeper(Keeper),
    Mounts(OwnedFd),
}

impl Left {
    /// It is gone after this.
    fn remove(self) -> io::Result<()> {
        match self {
            Left::Group { group, begun: true } => group.await_removal(),
            Left::Group { group, begun: false } => group.remove(),
            Left::Keeper(keeper) => keeper.let_go(),
            Left::Mounts(mounts) => {
                drop(mounts);
                Ok(())
            }
        }
    }
}

/// From here on they are left until `tidy`.
pub fn put_off() {
    LEFT.with_borrow_mut(|left| left.when = When::Later);
}

/// Until `tidy`, they are taken apart beside us, unless they are put off.
pub fn go_on() {
    LEFT.with_borrow_mut(|left| {
        if left.when == When::Now {
            left.when = When::Beside;
        }
    });
}

pub fn are_put_off() -> bool {
    LEFT.with_borrow(|left| left.when == When::Later)
}

pub fn go_on_beside() -> bool {
    LEFT.with_borrow(|left| left.when == When::Beside)
}

/// Of a sandbox in which nobody is any more: gone now, or after `tidy`.
pub fn leave(left: Left) -> io::Result<()> {
    let now = LEFT.with_borrow_mut(|leavings| match leavings.when {
        When::Now => Some(left),
        When::Beside if matches!(left, Left::Mounts(_)) => Some(left),
        When::Beside | When::Later => {
            leavings.list.push(left);
            None
        }
    });
    now.map_or(Ok(()), Left::remove)
}

/// They are gone after this. What can't be removed by whoever keeps it is tried here; where that was the first try, its keeper tries again
/// after our end.
pub fn tidy() -> io::Result<()> {
    // Not while it is borrowed: it takes long.
    let list = LEFT.with_borrow_mut(|left| {
        if left.when == When::Beside {
            left.when = When::Now;
        }
        std::mem::take(&mut left.list)
    });
    list.into_iter().map(Left::remove).fold(Ok(()), Result::and)
}
