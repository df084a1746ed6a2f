//! Leads visitors to servers of a sandbox that is open, for whoever serves them: a connection is made inside for each, and handed out.
//!
//! As with `forward`, somebody in the sandbox's network connects, and can do nothing else; and each visit is on the record before it is.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ledger::Durable;
use model::{NetworkDeed, NetworkEvent, Principal, Trouble, Ushered, Ushering, agents};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::SendFlags;
use serde_json::json;
use sys::descriptors;
use sys::dialer::{self, CONNECTED};
use sys::process::Alone;
use sys::residents::{self, Found};

use crate::Engine;
use crate::rail::Rail;
use crate::user::User;

const HOST: &str = "localhost";
const LONGEST: usize = 64;

impl Engine {
    /// Until the sandbox ends, or nobody asks any more.
    pub(crate) fn usher_into(
        &self,
        which: &str,
        agent: Option<&str>,
        asked: &OwnedFd,
        ready: &dyn Fn(),
    ) -> Result<(), Trouble> {
        let known = self.workspaces.identify(which)?;
        let trouble = |what: String| Trouble { message: what, fix: "open it first: `belljar open ID`".to_owned() };
        let not_open = || trouble(format!("sandbox {} is not open", known.id));
        let host = self.workspaces.call_on(&known.id)?.ok_or_else(not_open)?;
        let cannot = |error: io::Error| trouble(format!("cannot find the host of sandbox {}: {error}", known.id));
        let peer = rustix::net::sockopt::socket_peercred(&host).map_err(|error| cannot(error.into()))?;
        let process = peer.pid.as_raw_nonzero().get();
        let handle = sys::process::open(process).map_err(cannot)?;
        // Asked again with the descriptor in hand: the number could have come to mean somebody else.
        self.workspaces.call_on(&known.id)?.ok_or_else(not_open)?;
        drop(host);
        let run = self.run_watched_by(process)?;
        let agent = agent.map(str::to_owned).or_else(|| agents::detected(std::env::vars_os()));
        let principal = Principal { user: User::of_the_process().name, agent };
        let rail = Rail::new(self.ledger().cloned(), run, principal);
        let mut usher = Usher { rail, process, dialer: None };
        ready();
        usher.until_nobody_asks(asked, &handle).map_err(cannot)
    }
}

struct Usher {
    rail: Rail,
    /// Who watches over the sandbox.
    process: i32,
    /// Somebody in its network, as soon as there is somebody to visit.
    dialer: Option<OwnedFd>,
}

impl Usher {
    fn until_nobody_asks(&mut self, asked: &OwnedFd, host: &OwnedFd) -> io::Result<()> {
        loop {
            let mut both = [PollFd::new(asked, PollFlags::IN), PollFd::new(host, PollFlags::IN)];
            match poll(&mut both, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let (speaks, over) = (!both[0].revents().is_empty(), !both[1].revents().is_empty());
            if over {
                return Ok(());
            }
            if !speaks {
                continue;
            }
            let mut words = [0; LONGEST];
            let (length, _) = descriptors::receive(asked.as_fd(), &mut words)?;
            if length == 0 {
                return Ok(());
            }
            let Some(said) = words.get(..length).and_then(Ushering::decode) else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            let (answer, connection) = match said {
                Ushering::Leaves { .. } => {
                    self.records(said);
                    continue;
                }
                said if !self.records(said) => (Ushered::NotRecorded, None),
                Ushering::Comes { port, .. } => match self.dial(port)? {
                    Some(connection) => (Ushered::Yes, Some(connection)),
                    None => (Ushered::Nobody, None),
                },
                Ushering::Opens { .. } | Ushering::Closes { .. } => (Ushered::Yes, None),
            };
            let along: Vec<BorrowedFd<'_>> = connection.iter().map(AsFd::as_fd).collect();
            descriptors::send(asked.as_fd(), &[answer.byte()], &along)?;
        }
    }

    /// Whether it is on the record.
    fn records(&self, said: Ushering) -> bool {
        let event = |what, visitor, port| NetworkEvent {
            connection: Some(visitor),
            port: Some(port),
            why: "through the service".to_owned(),
            ..NetworkEvent::new(what, HOST.to_owned())
        };
        let (kind, data) = match said {
            Ushering::Opens { port } => {
                ("network.forward", json!({"host": HOST, "port": port, "why": "through the service"}))
            }
            Ushering::Closes { port } => {
                ("network.forward", json!({"host": HOST, "port": port, "why": "not through the service any more"}))
            }
            Ushering::Comes { visitor, port } => {
                (NetworkDeed::Visit.name(), json!(event(NetworkDeed::Visit, visitor, port)))
            }
            Ushering::Leaves { visitor, port, said, told } => {
                let event = NetworkEvent { bytes: Some((said, told)), ..event(NetworkDeed::Close, visitor, port) };
                (NetworkDeed::Close.name(), json!(event))
            }
        };
        self.rail.say(kind, false, data);
        let last_words = matches!(said, Ushering::Leaves { .. } | Ushering::Closes { .. });
        self.rail.write(Durable { last_words, ..Durable::default() }).is_ok()
    }

    /// Nothing if nobody listens there.
    fn dial(&mut self, port: u16) -> io::Result<Option<OwnedFd>> {
        let dialer = match self.dialer.take() {
            Some(dialer) => dialer,
            None => match residents::of(self.process, residents::uptime())? {
                Found::Here(home) => dialer::start_in(&home.network, Alone::prove()?)?,
                // Nobody lives there yet but its first process, which lets nobody in.
                Found::Closed | Found::Gone => return Ok(None),
            },
        };
        rustix::net::send(&dialer, &port.to_be_bytes(), SendFlags::NOSIGNAL)?;
        let mut answer = [0; 1];
        let (length, connection) = descriptors::receive(dialer.as_fd(), &mut answer)?;
        // One that has gone is not asked again; the next time there is another.
        if length == 1 {
            self.dialer = Some(dialer);
        }
        Ok(connection.into_iter().next().filter(|_| length == 1 && answer == [CONNECTED]))
    }
}
