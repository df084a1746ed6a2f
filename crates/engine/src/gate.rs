//! The gate of one sandbox: a process of its own, forked before the sandbox is, that holds its way out.
//!
//! Apart from us, because sandboxes are only forked from a process with one thread, and because it reads what hostile programs
//! send while we hold their limits. It has our memory as it was, so it knows the policy; it dies with us; and if it dies
//! first, nothing goes out any more.

mod fetcher;
mod news;
mod porter;
mod trusted;

use std::cell::RefCell;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use egress::{Cache, GateLimits, GateSettings, ReadLimits, Reader, SecretValue, Trust};
use model::{Doors, Gated, Handed, Outcome, Outside, Published, SetupFailure, Traffic, Trouble, Wall};
use sys::process::{Alone, Forked, Namespaces};
use sys::{descriptors, process, signals};

pub use fetcher::{Source, begin as begin_fetching};
pub use news::News;
pub use porter::{Doorkeeper, Shared};
use trusted::Trusted;

/// Where what is kept of downloads lies: with all that belongs to this user, or to this tenant of a service, who shares it with
/// nobody.
pub fn downloads() -> Option<std::path::PathBuf> {
    workspace::state_folder().map(|state| state.join("downloads"))
}

/// A gate that waits for its sandbox, or serves it.
pub struct Gate {
    link: Rc<Link>,
    files: Handed,
    published: bool,
    news: Option<News>,
}

/// Our end of it.
pub struct Link {
    pid: i32,
    wire: OwnedFd,
    /// Whoever fetches secrets for it; ends with it.
    fetcher: Option<i32>,
    /// What it said when it ended.
    said: RefCell<Option<Traffic>>,
}

/// What a gate is made from.
pub struct Plan {
    pub gated: Gated,
    pub keeper: Doorkeeper,
    pub secrets: Vec<SecretValue>,
    /// The process that fetches some of them.
    pub fetcher: Option<i32>,
    /// Somebody inside may be written in Java, which trusts in a way of its own.
    pub java: bool,
    /// What is kept of downloads, if anything is.
    pub cache: Option<Cache>,
}

/// More of what it did than this is not told.
const LONGEST_REPORT: usize = 160 << 10;

impl Gate {
    /// Forks it, with everything that can fail in a way that a person can mend done before.
    pub fn begin(plan: Plan) -> Result<Gate, Outcome> {
        let Plan { gated, mut keeper, secrets, fetcher, java, cache } = plan;
        let visits = listen(&gated.published)?;
        let published = !visits.is_empty();
        let (ours, theirs) = descriptors::wire().map_err(not_begun)?;
        let (teller, news) = news::pair().map_err(not_begun)?;
        keeper.news = Some(teller);
        let (files, writes) = if gated.reads { Trusted::begin(java).map_err(not_begun)? } else { Default::default() };
        let alone = Alone::prove().map_err(not_begun)?;
        match process::fork_into(alone, Namespaces::NONE, None).map_err(not_begun)? {
            Forked::Child => {
                drop((ours, news, files));
                attend(theirs, gated, keeper, writes, secrets, cache, visits)
            }
            Forked::Parent { pid, .. } => {
                let link = Rc::new(Link { pid, wire: ours, fetcher, said: RefCell::default() });
                // Its own: when it has gone without a word, nobody holds the other end.
                drop(writes);
                Ok(Gate { link, files, published, news: Some(news) })
            }
        }
    }

    /// What it tells while it serves: for one who listens.
    pub fn news(&mut self) -> Option<News> {
        self.news.take()
    }

    /// To hear of it when it has ended.
    pub fn link(&self) -> Rc<Link> {
        self.link.clone()
    }
}

impl Outside for Gate {
    fn files(&mut self) -> Handed {
        std::mem::take(&mut self.files)
    }

    fn takes(&mut self, doors: Doors, first: i32) -> Result<(), Trouble> {
        let trouble = |what: &str, error: io::Error| Trouble {
            message: format!("cannot {what}: {error}"),
            fix: "run it again; please report this if it stays".to_owned(),
        };
        let Doors { streams, names, long_names } = &doors;
        let mut words = first.to_le_bytes().to_vec();
        words.extend([streams.len() as u8, names.len() as u8, long_names.len() as u8]);
        // Forked by us: the gate has threads.
        let dialer = match streams.first().filter(|_| self.published) {
            Some(door) => {
                let dialer = Alone::prove().and_then(|alone| sys::dialer::start(door.as_fd(), alone));
                Some(dialer.map_err(|error| trouble("reach servers inside", error))?)
            }
            None => None,
        };
        let all = streams.iter().chain(names).chain(long_names).chain(&dialer);
        let all: Vec<BorrowedFd<'_>> = all.map(|one| one.as_fd()).collect();
        descriptors::send(self.link.wire.as_fd(), &words, &all)
            .map_err(|error| trouble("hand the sandbox's network to its gate", error))
    }

    fn gone(&self) -> BorrowedFd<'_> {
        self.link.wire.as_fd()
    }
}

impl Link {
    /// Has it end, and says what went out. A gate that can't say so any more was lost on the way.
    pub fn finish(&self) -> Traffic {
        if let Some(said) = self.said.borrow().as_ref() {
            return said.clone();
        }
        let heard = || -> io::Result<Traffic> {
            rustix::net::shutdown(&self.wire, rustix::net::Shutdown::Write)?;
            let mut words = vec![0; LONGEST_REPORT];
            let (count, _) = descriptors::receive(self.wire.as_fd(), &mut words)?;
            Ok(serde_json::from_slice(&words[..count])?)
        };
        let said = heard().unwrap_or_else(|_| Traffic { lost: true, ..Traffic::default() });
        // It ends by itself after that; whoever was lost has ended already.
        for pid in [Some(self.pid), self.fetcher].into_iter().flatten() {
            match process::wait(pid, false) {
                Ok(_) | Err(_) => {}
            }
        }
        self.said.replace(Some(said.clone()));
        said
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Hangs up, so that it ends, and leaves no zombie.
        self.finish();
    }
}

/// The process of the gate. Never returns.
fn attend(
    wire: OwnedFd,
    gated: Gated,
    keeper: Doorkeeper,
    writes: Option<Trusted>,
    secrets: Vec<SecretValue>,
    cache: Option<Cache>,
    visits: Vec<(Published, TcpListener)>,
) -> ! {
    let serve = || -> io::Result<Option<Traffic>> {
        process::die_with_parent()?;
        // For whoever lists processes.
        rustix::thread::set_name(c"belljar-gate")?;
        // It holds secrets and the authority's key: nobody looks into it, and no core file has them.
        process::forbid_inspection()?;
        process::forbid_new_privileges()?;
        // What a terminal sends to all of us is for the payload; we go when our parent does.
        signals::block_all()?;
        // Nothing is forked from here.
        if let Ok(ledger) = &keeper.rail.ledger {
            ledger.keep_open();
        }
        // Here and not before we were forked: beside the sandbox, which is built meanwhile, and its key is in no other memory.
        let authority = match writes {
            Some(writes) => match writes.written(&wire)? {
                Some(authority) => Some(authority),
                None => return Ok(None),
            },
            None => None,
        };
        let reader = Reader::new(authority, secrets, Trust::Host, ReadLimits::default()).with_cache(cache);
        let mut words = [0; 16];
        let (count, all) = descriptors::receive(wire.as_fd(), &mut words)?;
        let [a, b, c, d, streams, names, long_names] = words[..7] else { return Ok(None) };
        if count != 7 {
            return Ok(None);
        }
        let mut all = all.into_iter();
        let mut some = |count: u8| -> Vec<OwnedFd> { all.by_ref().take(usize::from(count)).collect() };
        let doors = Doors { streams: some(streams), names: some(names), long_names: some(long_names) };
        let dialer = all.next();
        let settings = GateSettings {
            porter: Rc::new(keeper),
            gated,
            first: i32::from_le_bytes([a, b, c, d]),
            limits: GateLimits::default(),
            reader: Some(reader),
            visits,
            dialer,
            heeds_signals: false,
        };
        let end = wire.try_clone()?;
        egress::serve_gate(settings, doors, end).map(Some).map_err(io::Error::other)
    };
    let code = match serve() {
        Ok(Some(traffic)) => {
            let mut said = serde_json::to_vec(&traffic).unwrap_or_default();
            if said.len() > LONGEST_REPORT {
                // The numbers at least: a report that does not arrive says that the gate was lost, and it was not.
                let numbers = Traffic { hosts: Vec::new(), denied: Vec::new(), ..traffic };
                said = serde_json::to_vec(&numbers).unwrap_or_default();
            }
            match descriptors::send(wire.as_fd(), &said, &[]) {
                Ok(()) => 0,
                Err(_) => 1,
            }
        }
        Ok(None) => 0,
        Err(_) => 1,
    };
    process::exit(code)
}

fn listen(published: &[Published]) -> Result<Vec<(Published, TcpListener)>, Outcome> {
    let one = |published: &Published| {
        let Published { host, .. } = *published;
        let listener = egress::listen(host).map_err(|error| SetupFailure {
            wall: None,
            message: format!("cannot publish at 127.0.0.1:{host}: {error}"),
            fix: "choose another port: `--publish OTHER:GUEST`".to_owned(),
            layers: false,
        });
        listener.map(|listener| (*published, listener)).map_err(Outcome::NotSetUp)
    };
    published.iter().map(one).collect()
}

fn not_begun(error: impl std::fmt::Display) -> Outcome {
    Outcome::NotSetUp(SetupFailure {
        wall: Some(Wall::Network),
        message: format!("the way out to the network can't be made: {error}"),
        fix: "see `belljar doctor`, or run without a network: `--no-net`".to_owned(),
        layers: false,
    })
}
