//! Everything the first process needs to know. One that is forked by whoever knows it has a copy; one that was begun before
//! anybody knew is told.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use serde::{Deserialize, Serialize};
use sys::process::Strings;
use sys::{descriptors, signals};

use crate::files::Operation;
use crate::step::Step;
use crate::trial::Trial;

/// What it does, in this order: steps, trials, and then what it is there for.
#[derive(Serialize, Deserialize)]
pub struct Orders {
    /// What depends on nothing but the host, and may have been done by whoever is told the rest.
    #[serde(skip)]
    pub groundwork: Vec<Step>,
    pub steps: Vec<Step>,
    /// What must not succeed once all steps are taken.
    pub trials: Vec<Trial>,
    /// Nothing: it stays, and starts what it will be told to.
    pub payload: Option<Payload>,
    /// Instead of a payload: work on files, by code of ours.
    pub files: Option<Operation>,
    /// To whoever stands outside and writes files for us.
    #[serde(skip)]
    pub handed: Option<OwnedFd>,
    /// The signal mask that the payload gets: the caller's.
    pub mask: signals::Mask,
    /// Report how long each step took.
    pub trace: bool,
    /// The processor of whoever told them and waits there, for one that must stay away from it until its walls stand.
    pub beside: Option<usize>,
    /// Every processor has something to do: nothing is gained by having others do a part of it.
    pub unhelped: bool,
}

#[derive(Serialize, Deserialize)]
pub struct Payload {
    pub program: CString,
    pub arguments: Strings,
    pub environment: Strings,
    pub directory: CString,
    pub terminal: bool,
    /// Numbers of descriptors that it gets besides input and output.
    pub gifts: Vec<RawFd>,
}

/// What comes before them on the wire.
const TOLD: &[u8] = b"orders";
/// No more than what a kernel would take as words and variables of one program, several times over.
const LONGEST: u64 = 64 << 20;

impl Orders {
    /// By its number in reports.
    pub fn step(&self, number: u32) -> Option<&Step> {
        self.groundwork.iter().chain(&self.steps).nth(number as usize)
    }

    /// Tells a first process that waits for them. `streams`: what the payload gets as input, output and error output.
    pub fn tell(&self, wire: BorrowedFd<'_>, streams: [BorrowedFd<'_>; 3]) -> io::Result<()> {
        let bytes = postcard::to_stdvec(self).map_err(io::Error::other)?;
        // Words and variables can be longer than what a socket takes at once.
        let file = sys::parcel::make()?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        let all: Vec<BorrowedFd<'_>> =
            [file.as_fd()].into_iter().chain(streams).chain(self.handed.as_ref().map(AsFd::as_fd)).collect();
        descriptors::send(wire, TOLD, &all)
    }

    /// Waits for them. With them, what the payload gets as input, output and error output.
    pub(crate) fn hear(wire: BorrowedFd<'_>) -> io::Result<(Orders, [OwnedFd; 3])> {
        let mut words = [0; TOLD.len() + 1];
        let (count, received) = descriptors::receive(wire, &mut words)?;
        let mut received = received.into_iter();
        let mut next = || received.next().ok_or(io::ErrorKind::UnexpectedEof);
        if words.get(..count) != Some(TOLD) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (file, streams) = (next()?, [next()?, next()?, next()?]);
        let length = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(u64::MAX);
        if length > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match rustix::io::pread(&file, &mut bytes[filled..], filled as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        let orders: Orders = postcard::from_bytes(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok((Orders { handed: received.next(), ..orders }, streams))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use rustix::fs::MemfdFlags;
    use sys::filter::Program;
    use sys::identity::Mapping;
    use sys::limits::Limit;
    use sys::mounts::Attributes;

    use super::*;
    use crate::files::Deed;
    use crate::step::{Access, Landlock, Source, Way};
    use crate::wire;

    fn text(text: &str) -> CString {
        CString::new(text).expect("no zero byte")
    }

    /// One of each: a new one that is missing here is missed by nobody but this list, so it stands beside `fmt` of `Step`.
    fn every_step() -> Vec<Step> {
        let map = Mapping { inside: 0, outside: 1000 };
        let received = || Source::Received { path: text("/usr"), tree: 3 };
        vec![
            Step::JoinGroups,
            Step::AwaitParent,
            Step::MapSelf { user: map, group: map },
            Step::Become { user: 0, group: 5 },
            Step::DieWithParent,
            Step::HideControlGroups,
            Step::KeepMountsPrivate,
            Step::NewRoot { size: text("1"), inodes: text("2") },
            Step::Receive,
            Step::Directory { path: text("etc"), mode: 0o755 },
            Step::File { path: text("etc/a"), mode: 0o644, contents: vec![0, 1, 255] },
            Step::HandOut { files: vec![text("a"), text("b")] },
            Step::AwaitHanded,
            Step::Link { path: text("bin"), target: text("usr/bin") },
            Step::Bind {
                source: Source::Path(Way::Careful(text("/home/a"))),
                target: Way::Plain(text("home/a")),
                attributes: Attributes::READ_ONLY,
            },
            Step::Scratch { path: Way::Careful(text("tmp")) },
            Step::Overlay { lower: vec![received()], layer: received(), target: Way::Plain(text("w")) },
            Step::Hide { path: Way::Plain(text("proc/keys")), cover: text("file") },
            Step::Replace { path: Way::Plain(text("proc/a")), by: text("b") },
            Step::Proc { path: text("proc"), writable: true },
            Step::Terminals { path: text("dev/pts") },
            Step::SealRoot,
            Step::ChangeRoot,
            Step::Hostname(text("belljar")),
            Step::BeginNetwork,
            Step::JoinNetwork,
            Step::OpenDoors { loopback: vec![80, 443] },
            Step::EnterUser { user: map, group: map },
            Step::Offer,
            Step::NewSession,
            Step::NewKeyring,
            Step::AdoptOrphans,
            Step::DropCapabilities { bounding: true },
            Step::ForbidNewPrivileges,
            Step::Lower(Limit::OpenFiles, 1024),
            Step::OwnTerminal,
            Step::Restrict(Landlock { abi: 7, rules: vec![(text("/"), Access::Devices)], refuse_tcp: true }),
            Step::AwaitTick { after: -1 },
            Step::Filter(Program::from_bytes(&[6, 0, 0, 0, 0, 0, 255, 127]).expect("an instruction")),
            Step::ForbidInspection,
        ]
    }

    fn orders(arguments: Vec<CString>) -> Orders {
        let payload = Payload {
            program: text("/bin/true"),
            arguments: Strings::new(arguments),
            environment: Strings::new(vec![text("A=b")]),
            directory: text("/"),
            terminal: true,
            gifts: vec![7],
        };
        Orders {
            groundwork: Vec::new(),
            steps: every_step(),
            trials: vec![Trial::ForbiddenCall, Trial::OpenMore { than: 9 }],
            payload: Some(payload),
            files: Some(Operation::new(Deed::Read, b"a/b")),
            handed: None,
            mask: signals::Mask::from(1 << 14 | 1),
            trace: true,
            beside: Some(3),
            unhelped: true,
        }
    }

    #[test]
    fn what_is_told_is_what_is_heard() {
        let (ours, theirs) = wire::pair().expect("a socket pair");
        let null = std::fs::File::open("/dev/null").expect("it is there");
        // Longer than what a socket takes at once.
        let words = vec![text(&"long ".repeat(1 << 17)), text("")];
        let told = orders(words.clone());
        told.tell(ours.as_fd(), [null.as_fd(); 3]).expect("told");
        let (heard, streams) = Orders::hear(theirs.as_fd()).expect("heard");
        let shown = |orders: &Orders| format!("{:?} {:?} {:?}", orders.steps, orders.trials, orders.files);
        assert_eq!(shown(&heard), shown(&told));
        assert_eq!(postcard::to_stdvec(&heard).expect("encoded"), postcard::to_stdvec(&told).expect("encoded"));
        let payload = heard.payload.expect("a payload");
        assert_eq!((payload.gifts, payload.terminal, payload.directory), (vec![7], true, text("/")));
        assert_eq!(u64::from(heard.mask), 1 << 14 | 1);
        assert!(heard.trace && heard.handed.is_none() && heard.beside == Some(3) && heard.unhelped);
        assert_eq!(streams.len(), 3);
    }

    #[test]
    fn half_of_them_are_none() {
        let (ours, theirs) = wire::pair().expect("a socket pair");
        let null = std::fs::File::open("/dev/null").expect("it is there");
        let whole = postcard::to_stdvec(&orders(vec![text("a")])).expect("encoded");
        for length in [0, 1, whole.len() / 2, whole.len() - 1] {
            let file = rustix::fs::memfd_create(c"half", MemfdFlags::CLOEXEC).expect("a file");
            rustix::io::write(&file, &whole[..length]).expect("written");
            descriptors::send(ours.as_fd(), TOLD, &[file.as_fd(), null.as_fd(), null.as_fd(), null.as_fd()])
                .expect("sent");
            assert!(Orders::hear(theirs.as_fd()).is_err(), "{length} of {} bytes", whole.len());
        }
        descriptors::send(ours.as_fd(), b"others", &[null.as_fd()]).expect("sent");
        assert!(Orders::hear(theirs.as_fd()).is_err());
        drop(ours);
        assert!(Orders::hear(theirs.as_fd()).is_err(), "nobody is there any more");
    }
}
