//! Appends to the record: many processes at once, one lock, one write.
//!
//! Nothing of it stays open between two appends, because sandboxes are forked in between; whoever forks none any more
//! may keep it open, which halves what an append costs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, FlockOperation};
use serde_json::json;

use crate::checkpoint::{Checkpoint, MOST_UNSIGNED};
use crate::error::{Error, Result, cannot};
use crate::head::{self, Block, Head};
use crate::index;
use crate::key::{Key, PublicKey, random};
use crate::line::{self, Draft, Hash, time_text};
use crate::place::{Place, options};
use crate::{kinds, recover};

/// Then another segment begins.
pub const LARGEST_SEGMENT: u64 = 64 << 20;
/// Room for the last words of runs.
const RESERVE: u64 = 1 << 20;
/// A writer needs less than a millisecond; one that was stopped may need for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// A record, in its folder. Opens nothing before it is used.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(crate) place: Place,
    largest_segment: u64,
    /// Read once: to make a key of its file takes as long as to write an entry.
    key: Arc<OnceLock<Key>>,
    /// What stays open, if anything may.
    open: Arc<Mutex<Option<Open>>>,
}

/// Files that stay open between two appends.
#[derive(Debug, Default)]
struct Open {
    head: Option<Arc<File>>,
    /// Of this segment.
    log: Option<(u64, File)>,
}

/// What an append has to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durable {
    /// It outlives the machine's end, not only ours: for effects that can't be undone.
    pub on_disk: bool,
    /// The chain is signed up to here.
    pub checkpoint: bool,
    /// Of something that has begun already: on a full disk, the room that is kept for this may be used.
    pub last_words: bool,
}

/// Where the entries are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    pub installation: String,
    /// The number of the last entry.
    pub number: u64,
    pub hash: Hash,
    /// What anchors outside should be told.
    pub checkpoint: Option<Checkpoint>,
}

/// As long as it is there, nobody else writes. Ends with the file.
pub(crate) struct Lock {
    pub file: Arc<File>,
    /// Of this segment; open since an earlier append.
    log: Option<(u64, File)>,
    /// Where both go when it ends.
    back: Option<Arc<Mutex<Option<Open>>>>,
}

/// Where the next entry goes.
pub(crate) struct End {
    pub head: Head,
    /// What the next entries have to say first.
    pub said: Vec<Draft>,
}

impl Ledger {
    pub fn at(folder: PathBuf) -> Ledger {
        Ledger {
            place: Place::new(folder),
            largest_segment: LARGEST_SEGMENT,
            key: Arc::default(),
            open: Arc::default(),
        }
    }

    /// With segments of another size: for those who try it.
    #[must_use]
    pub fn with_segments_of(self, bytes: u64) -> Ledger {
        Ledger { largest_segment: bytes, ..self }
    }

    /// From now on its files stay open. For whoever starts no sandbox any more: its first process would have them too.
    pub fn keep_open(&self) {
        if let Ok(mut open) = self.open.lock() {
            open.get_or_insert_default();
        }
    }

    pub fn folder(&self) -> &Path {
        self.place.folder()
    }

    /// The key that signs, made if there is none yet.
    pub fn key(&self) -> Result<&Key> {
        match self.key.get() {
            Some(key) => Ok(key),
            None => {
                let _lock = self.lock()?;
                self.locked_key()
            }
        }
    }

    /// Whoever calls holds the lock.
    fn locked_key(&self) -> Result<&Key> {
        match self.key.get() {
            Some(key) => Ok(key),
            None => {
                let key = Key::of(&self.place)?;
                Ok(self.key.get_or_init(|| key))
            }
        }
    }

    /// The key that signed, without making one.
    pub fn public_key(&self) -> Result<PublicKey> {
        PublicKey::read(&self.place.public_key())
    }

    /// The entries become part of the record, all of them or none.
    pub fn append(&self, drafts: &[Draft], durable: Durable) -> Result<Appended> {
        let bodies = drafts.iter().map(Draft::body).collect::<Result<Vec<_>>>()?;
        let appended = match self.append_bodies(&bodies, durable) {
            Err(error) if error.is_full() && durable.last_words && self.use_reserve() => {
                self.append_bodies(&bodies, durable)?
            }
            appended => appended?,
        };
        if !durable.last_words {
            self.keep_reserve()?;
        }
        Ok(appended)
    }

    fn append_bodies(&self, bodies: &[String], durable: Durable) -> Result<Appended> {
        let mut lock = self.lock()?;
        let (mut head, log, said) = self.segment_to_write(&mut lock)?;
        let (before, path) = (head.length, self.place.segment(head.segment));
        let mut checkpoint = None;
        let mut lines = Vec::with_capacity(bodies.iter().map(|body| body.len() + 160).sum::<usize>() + 512);
        for body in said.iter().chain(bodies) {
            add(&mut head, &mut lines, body);
            if head.unsigned >= MOST_UNSIGNED - 1 {
                checkpoint = Some(self.sign(&mut head, &mut lines)?);
            }
        }
        if durable.checkpoint {
            checkpoint = Some(self.sign(&mut head, &mut lines)?);
        }
        head.length += lines.len() as u64;
        if let Err(error) = log.write_all_at(&lines, before) {
            // What was written in part is no entry. If it can't be taken back, the next writer finds it torn.
            log.set_len(before).ok();
            return Err(cannot("write", &path)(error));
        }
        if durable.on_disk {
            log.sync_data().map_err(cannot("write", &path))?;
        }
        if head.block.entries >= index::BLOCK {
            head.block = index::extend(&self.place, head.segment, &log, head.block, head.length)?;
        }
        lock.note(&self.place, &head)?;
        lock.log = Some((head.segment, log));
        let Head { installation, number, hash, .. } = head;
        Ok(Appended { installation, number, hash, checkpoint })
    }

    fn sign(&self, head: &mut Head, lines: &mut Vec<u8>) -> Result<Checkpoint> {
        let key = self.locked_key()?;
        let at = line::micros_now();
        let checkpoint = Checkpoint::sign(key, &head.installation, head.number, &head.hash, time_text(at));
        let draft = Draft { at, kind: kinds::CHECKPOINT, data: checkpoint.json(), ..Draft::default() };
        add(head, lines, &draft.body()?);
        head.unsigned = 0;
        Ok(checkpoint)
    }

    /// The segment that takes the next entry, begun if need be.
    fn segment_to_write(&self, lock: &mut Lock) -> Result<(Head, File, Vec<String>)> {
        let End { head, said } = match lock.noted(&self.place)? {
            Some(head) if head.number > 0 => match self.open_as_noted(&head, lock.log.take())? {
                Some(log) if head.length < self.largest_segment => return Ok((head, log, Vec::new())),
                Some(_) if !self.place.segment(head.segment + 1).exists() => End { head, said: Vec::new() },
                _ => recover::end(&self.place, Some(head))?,
            },
            noted => recover::end(&self.place, noted)?,
        };
        let mut said = said.iter().map(Draft::body).collect::<Result<Vec<_>>>()?;
        // A segment that was begun and has no entry yet is begun again.
        if head.number > 0 && head.length > 0 && head.length < self.largest_segment {
            let path = self.place.segment(head.segment);
            let log = options().write(true).open(&path).map_err(cannot("open", &path))?;
            return Ok((head, log, said));
        }
        let (head, first) = self.begin(head)?;
        said.insert(0, first.body()?);
        let path = self.place.segment(head.segment);
        let log = options().write(true).create(true).truncate(false).open(&path).map_err(cannot("open", &path))?;
        self.place.sync()?;
        Ok((head, log, said))
    }

    /// The first entry of the next segment.
    fn begin(&self, head: Head) -> Result<(Head, Draft)> {
        let mut head = head;
        if head.length > 0 || head.segment == 0 {
            head = Head { segment: head.segment + 1, length: 0, block: Block { offset: 0, entries: 0 }, ..head };
        }
        let draft = if head.installation.is_empty() {
            let mut id = [0; 16];
            random(&mut id)?;
            head.installation = id.iter().map(|byte| format!("{byte:02x}")).collect();
            let key = self.locked_key()?.public();
            let data = json!({
                "format": 1, "installation": head.installation, "segment": head.segment, "key": key.id(), "public_key": key.pem(),
            });
            Draft::now(kinds::BEGUN, data.to_string())
        } else {
            let data = json!({"format": 1, "installation": head.installation, "segment": head.segment});
            Draft::now(kinds::SEGMENT, data.to_string())
        };
        Ok((head, draft))
    }

    /// The segment, if it ends where the head says it does.
    fn open_as_noted(&self, head: &Head, known: Option<(u64, File)>) -> Result<Option<File>> {
        let path = self.place.segment(head.segment);
        let fits = |metadata: std::fs::Metadata| metadata.is_file() && metadata.len() == head.length;
        if let Some((segment, log)) = known
            && segment == head.segment
            && rustix::fs::fstat(&log).is_ok_and(|stat| stat.st_nlink > 0 && stat.st_size.unsigned_abs() == head.length)
        {
            return Ok(Some(log));
        }
        let log = match options().write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            log => log.map_err(cannot("open", &path))?,
        };
        let metadata = log.metadata().map_err(cannot("read", &path))?;
        Ok(fits(metadata).then_some(log))
    }

    pub(crate) fn lock(&self) -> Result<Lock> {
        let path = self.place.head();
        let mut kept = self.open.lock().ok().and_then(|mut open| open.as_mut().map(std::mem::take));
        if let Some(Open { head, .. }) = &mut kept
            && let Some(file) = head.take()
            && rustix::fs::fstat(&*file).is_ok_and(|stat| stat.st_nlink > 0)
        {
            wait_for(&file, &path)?;
            let log = kept.and_then(|kept| kept.log);
            return Ok(Lock { file, log, back: Some(self.open.clone()) });
        }
        let open = || options().write(true).create(true).truncate(false).open(&path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.place.make()?;
                open()
            }
            file => file,
        };
        let file = file.map_err(cannot("open", &path))?;
        wait_for(&file, &path)?;
        Ok(Lock { file: Arc::new(file), log: None, back: kept.is_some().then(|| self.open.clone()) })
    }

    fn keep_reserve(&self) -> Result<()> {
        let path = self.place.reserve();
        if path.exists() {
            return Ok(());
        }
        let file = options().write(true).create(true).truncate(false).open(&path).map_err(cannot("open", &path))?;
        let kept = match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, RESERVE) {
            // Where room can't be kept by saying so, it is kept by writing.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                io::Write::write_all(&mut &file, &vec![0; usize::try_from(RESERVE).unwrap_or_default()])
            }
            kept => kept.map_err(Into::into),
        };
        kept.map_err(|error| {
            std::fs::remove_file(&path).ok();
            cannot("keep room at", &path)(error)
        })
    }

    /// Whether there was any.
    fn use_reserve(&self) -> bool {
        std::fs::remove_file(self.place.reserve()).is_ok()
    }
}

impl Drop for Lock {
    /// Closing the file unlocks it; one that stays open is unlocked, or not kept.
    fn drop(&mut self) {
        let Some(mut open) = self.back.as_ref().and_then(|back| back.lock().ok()) else { return };
        if rustix::fs::flock(&*self.file, FlockOperation::Unlock).is_ok() {
            *open = Some(Open { head: Some(self.file.clone()), log: self.log.take() });
        }
    }
}

impl Lock {
    /// Of a file that was opened to read only.
    pub fn none(file: File) -> Lock {
        Lock { file: Arc::new(file), log: None, back: None }
    }

    pub fn noted(&self, place: &Place) -> Result<Option<Head>> {
        let mut bytes = [0; head::SIZE];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], filled as u64).map_err(cannot("read", place.head()))? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(Head::read(&bytes[..filled]))
    }

    pub fn note(&self, place: &Place, head: &Head) -> Result<()> {
        self.file.write_all_at(&head.write(), 0).map_err(cannot("write", place.head()))
    }
}

fn add(head: &mut Head, lines: &mut Vec<u8>, body: &str) {
    head.number += 1;
    head.hash = line::write(lines, head.number, &head.hash, body);
    head.unsigned += 1;
    head.block.entries += 1;
}

/// Nobody holds it long, so we look again at once, and then less and less often: where there are more writers than
/// processors, whoever looks takes time from whoever writes. Not for ever, as one who holds it may have been stopped.
fn wait_for(file: &File, path: &Path) -> Result<()> {
    let began = Instant::now();
    let mut tries = 0u32;
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(cannot("lock", path)(error)),
        }
        tries += 1;
        if tries < 3 {
            std::thread::yield_now();
        } else if began.elapsed() > PATIENCE {
            return Err(Error::Busy { path: path.to_owned(), seconds: PATIENCE.as_secs() });
        } else {
            std::thread::sleep(Duration::from_micros(u64::from(tries.min(10)) * 100));
        }
    }
}
