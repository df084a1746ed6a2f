//! Collecting from real folders, with somebody who works against it.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::{Examined, ReleaseGate, Withheld};

use super::*;
use crate::error::Error;
use crate::keep;

struct Bench {
    folder: PathBuf,
    work: PathBuf,
    store: Store,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let folder = fs::canonicalize(std::env::temp_dir())
            .expect("a folder for such")
            .join(format!("belljar-artifacts-{name}-{}", std::process::id()));
        let work = folder.join("work");
        fs::create_dir_all(work.join("out")).expect("a folder");
        let mut store = Store::at(folder.join("state"));
        store.ready().expect("a store");
        Bench { folder, work, store }
    }

    fn direct(&self) -> Direct {
        let owner = rustix::process::geteuid().as_raw();
        let (workspace, place) = (self.work.as_path(), self.work.as_path());
        Direct::open(&Writable { workspace, place, is_folder: true, except: Vec::new(), owner }).expect("it is there")
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.work.join(name), text).expect("a file");
    }

    fn gather(&self, direct: Direct, pattern: &str, gate: &dyn ReleaseGate) -> Gathered {
        self.gather_within(direct, pattern, gate, BOUNDS)
    }

    fn gather_within(&self, direct: Direct, pattern: &str, gate: &dyn ReleaseGate, bounds: Bounds) -> Gathered {
        let patterns = vec![Pattern::read(pattern).expect("a pattern")];
        let wanted = [Wanted { workspace: self.work.clone(), patterns }];
        let run = new_id().expect("an id");
        gather(&self.store, None, &Wish { run: &run, wanted: &wanted, direct: &[direct], bounds, gate })
            .expect("it is gathered")
    }

    /// Contents in the store, and whatever else is there.
    fn blobs(&self) -> Vec<Vec<u8>> {
        let blobs = fs::read_dir(self.store.blobs().folder()).into_iter().flatten().flatten();
        blobs.map(|blob| fs::read(blob.path()).expect("it is a file")).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).expect("it was there");
    }
}

const BOUNDS: Bounds = Bounds { largest: 1 << 20, most: 100, total: 2 << 20 };

/// Lets everything pass, except what holds this.
struct Without(&'static [u8]);

impl ReleaseGate for Without {
    fn at_sight(&self, name: &str, _: u64) -> Option<Withheld> {
        name.ends_with(".never").then(|| Withheld::new("never", "by its name"))
    }

    fn within(&self, _: &str, mut contents: &File, size: u64) -> (Examined, Option<Withheld>) {
        let mut read = Vec::new();
        contents.read_to_end(&mut read).expect("it can be read");
        assert_eq!(read.len() as u64, size);
        // Whoever looks into it can't change it.
        contents.write_at(b"x", 0).expect_err("it is not for writing");
        let found = read.windows(self.0.len()).any(|part| part == self.0);
        let examined = Examined { kind: "text/plain".to_owned(), findings: Vec::new() };
        (examined, found.then(|| Withheld::new("found", "by its contents")))
    }
}

fn fates(gathered: &Gathered) -> Vec<(String, &str)> {
    let fate = |artifact: &Artifact| artifact.withheld().map_or("released", |withheld| rule_of(&withheld.rule));
    gathered.artifacts.iter().map(|artifact| (artifact.path.display().to_string(), fate(artifact))).collect()
}

fn rule_of(rule: &str) -> &'static str {
    let known = [
        "artifacts.kind", "artifacts.readable", "artifacts.owner", "artifacts.largest", "artifacts.total",
        "artifacts.changed", "never", "found",
    ];
    known.into_iter().find(|known| *known == rule).expect("a rule that is known")
}

fn text(bench: &Bench, id: &str) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    copy(&bench.store, &bench.store.state()?, id, &mut out).map(|_| out)
}

#[test]
fn what_was_written_since_is_kept_and_what_is_withheld_is_not() {
    let bench = Bench::new("since");
    bench.put("out/old", "old");
    // Until whatever is written now is later: the clock of files has a coarse hand.
    sys::clock::await_tick(sys::clock::now());
    let direct = bench.direct();
    bench.put("out/a", "hello");
    bench.put("out/b", "a SECRET in it");
    bench.put("out/c.never", "by name");
    bench.put("other", "not asked for");
    fs::set_permissions(bench.work.join("out/a"), fs::Permissions::from_mode(0o4755)).expect("a mode");
    let gathered = bench.gather(direct, "out", &Without(b"SECRET"));
    let expected = [("out/a", "released"), ("out/b", "found"), ("out/c.never", "never")];
    assert_eq!(fates(&gathered), expected.map(|(path, fate)| (path.to_owned(), fate)));
    assert_eq!(bench.blobs(), [b"hello"]);
    let (a, b, c) = (&gathered.artifacts[0], &gathered.artifacts[1], &gathered.artifacts[2]);
    assert!(a.executable && a.digest.is_some() && b.digest.is_some() && c.digest.is_none());
    assert_eq!(text(&bench, &a.id[..10]).expect("it is kept"), b"hello");
    assert!(matches!(text(&bench, &b.id), Err(Error::Withheld { .. })));
    assert!(matches!(text(&bench, "nothing"), Err(Error::NoSuchArtifact(_))));
    assert!(matches!(text(&bench, ""), Err(Error::NoSuchArtifact(_) | Error::AmbiguousArtifact { .. })));
}

#[test]
fn contents_that_were_changed_in_the_store_are_not_handed_out() {
    let bench = Bench::new("damaged");
    let direct = bench.direct();
    bench.put("out/a", "hello");
    let id = bench.gather(direct, ".", &Without(b"SECRET")).artifacts[0].id.clone();
    assert_eq!(text(&bench, &id).expect("it is kept"), b"hello");
    let blob = fs::read_dir(bench.store.blobs().folder()).expect("blobs").flatten().next().expect("one").path();
    for changed in ["jello", "hello, and more", ""] {
        fs::write(&blob, changed).expect("it is ours");
        assert!(matches!(text(&bench, &id), Err(Error::Damaged { .. })), "{changed}");
    }
    fs::remove_file(&blob).expect("it was there");
    assert!(matches!(text(&bench, &id), Err(Error::Damaged { .. })));
}

#[test]
fn beyond_the_most_files_are_only_counted() {
    let bench = Bench::new("most");
    let direct = bench.direct();
    for number in 0..130 {
        bench.put(&format!("out/{number:03}"), "x");
    }
    let gathered = bench.gather(direct, "out", &Without(b"SECRET"));
    assert_eq!((gathered.artifacts.len(), gathered.not_listed), (100, 30));
    assert_eq!(gathered.artifacts[99].path.display().to_string(), "out/099");
}

#[test]
fn a_file_that_is_too_large_or_comes_when_there_is_no_room_is_not_read() {
    let bench = Bench::new("large");
    let direct = bench.direct();
    for name in ["a", "b", "c"] {
        bench.put(&format!("out/{name}"), &name.repeat(1 << 20));
    }
    bench.put("out/d", &"d".repeat((1 << 20) + 1));
    let sparse = File::create(bench.work.join("out/sparse")).expect("a file");
    sparse.set_len(1 << 40).expect("a sparse one");
    let begun = Instant::now();
    let gathered = bench.gather(direct, "out", &Without(b"SECRET"));
    // The debug build hashes slowly; a tebibyte would take hours.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let expected = [
        ("out/a", "released"),
        ("out/b", "released"),
        ("out/c", "artifacts.total"),
        ("out/d", "artifacts.largest"),
        ("out/sparse", "artifacts.largest"),
    ];
    assert_eq!(fates(&gathered), expected.map(|(path, fate)| (path.to_owned(), fate)));
    assert_eq!(gathered.artifacts[4].size, 1 << 40);
    let on_disk: usize = bench.blobs().iter().map(Vec::len).sum();
    assert_eq!(on_disk, 2 << 20);
}

#[test]
fn what_is_no_file_is_named_and_never_opened() {
    let bench = Bench::new("kinds");
    let direct = bench.direct();
    let out = bench.work.join("out");
    rustix::fs::mknodat(rustix::fs::CWD, out.join("pipe"), rustix::fs::FileType::Fifo, 0o644.into(), 0)
        .expect("a pipe");
    let _socket = std::os::unix::net::UnixListener::bind(out.join("socket")).expect("a socket");
    symlink("/etc/passwd", out.join("link")).expect("a link");
    symlink("/etc", bench.work.join("folder")).expect("a link");
    bench.put("out/control", "control");
    let begun = Instant::now();
    let gathered = bench.gather(direct, "out", &Without(b"root:"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let kind = "artifacts.kind";
    let expected = [("out/control", "released"), ("out/link", kind), ("out/pipe", kind), ("out/socket", kind)];
    assert_eq!(fates(&gathered), expected.map(|(path, fate)| (path.to_owned(), fate)));

    let direct = bench.direct();
    fs::remove_file(bench.work.join("folder")).expect("it was there");
    symlink("/etc", bench.work.join("folder")).expect("a link");
    let gathered = bench.gather(direct, "folder/pass*", &Without(b"root:"));
    assert_eq!(fates(&gathered), [("folder".to_owned(), kind)]);
    assert_eq!(bench.blobs(), [b"control"]);
}

#[test]
fn a_name_that_is_swapped_for_a_link_leads_nowhere() {
    let bench = Bench::new("swap");
    let secret = bench.folder.join("secret");
    fs::create_dir(&secret).expect("a folder");
    fs::write(secret.join("a"), "SECRET").expect("a file");
    let (file, link) = (bench.work.join("out/a"), bench.folder.join("link"));
    let (folder, elsewhere) = (bench.work.join("deep"), bench.folder.join("elsewhere"));
    let done = AtomicBool::new(false);
    let (mut released, mut led_astray) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Between listing and opening: a file and a link, a folder and a link to another, over and over.
            while !done.load(Ordering::Relaxed) {
                swap(&file, &link, &secret.join("a"));
                swap_folder(&folder, &elsewhere, &secret);
            }
        });
        // Whatever happens here, the other comes to its end.
        let _end = End(&done);
        for round in 0..50_000 {
            if round >= 300 && released > 0 && led_astray > 0 {
                break;
            }
            // Who reads by the name is led astray.
            led_astray += usize::from(fs::read(&file).is_ok_and(|read| read == b"SECRET"));
            let gathered = bench.gather(bench.direct(), "**/a", &Never);
            released += gathered.artifacts.iter().filter(|artifact| artifact.withheld().is_none()).count();
        }
    });
    assert!(led_astray > 0, "this is no attack");
    assert!(released > 0, "the control failed: an ordinary file was never collected");
    assert!(bench.blobs().iter().all(|blob| !blob.windows(6).any(|part| part == b"SECRET")));
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The file, then a link in its place, each whole.
fn swap(file: &Path, aside: &Path, secret: &Path) {
    fs::write(aside, "fine").expect("a file");
    fs::rename(aside, file).expect("it takes its place");
    symlink(secret, aside).expect("a link");
    fs::rename(aside, file).expect("it takes its place");
}

fn swap_folder(folder: &Path, elsewhere: &Path, secret: &Path) {
    fs::create_dir(folder).expect("a folder");
    fs::write(folder.join("a"), "fine").expect("a file");
    fs::rename(folder, elsewhere).expect("it goes");
    symlink(secret, folder).expect("a link");
    fs::remove_file(folder).expect("it was there");
    fs::remove_dir_all(elsewhere).expect("it was there");
}

/// Sees that nothing comes here that should not.
struct Never;

impl ReleaseGate for Never {
    fn at_sight(&self, _: &str, _: u64) -> Option<Withheld> {
        None
    }

    fn within(&self, name: &str, mut contents: &File, _: u64) -> (Examined, Option<Withheld>) {
        let mut read = String::new();
        contents.read_to_string(&mut read).expect("it can be read");
        // In the folder it may be seen before it is written.
        assert!(matches!(read.as_str(), "fine" | ""), "{name}: {read}");
        (unknown(), None)
    }
}

#[test]
fn the_folder_that_was_opened_is_looked_into_whatever_has_its_name() {
    let bench = Bench::new("root");
    let direct = bench.direct();
    bench.put("out/a", "mine");
    let moved = bench.folder.join("moved");
    fs::rename(&bench.work, &moved).expect("it goes");
    symlink("/etc", &bench.work).expect("a link");
    let gathered = bench.gather(direct, ".", &Without(b"root:"));
    assert_eq!(fates(&gathered), [("out/a".to_owned(), "released")]);
    assert_eq!(bench.blobs(), [b"mine"]);
    let error = Direct::open(&Writable {
        workspace: &bench.work,
        place: &bench.work,
        is_folder: true,
        except: Vec::new(),
        owner: 0,
    });
    assert!(error.is_err(), "a link is no workspace");
}

#[test]
fn a_file_of_somebody_else_is_not_the_runs_to_give() {
    let us = rustix::process::geteuid().as_raw();
    let seen = |user, names| Seen { owner: (user, user), names, ..Seen::nothing() };
    assert_eq!(find::is_anothers(&seen(us, 1), us, us), None);
    assert_eq!(find::is_anothers(&seen(us, 2), us, us), None, "their own under a second name");
    assert_eq!(find::is_anothers(&seen(us + 1, 1), us + 1, us), None, "the workspace's owner's");
    assert!(find::is_anothers(&seen(us + 1, 1), us, us).is_some());
    assert!(find::is_anothers(&seen(us, 2), us + 1, us).is_some(), "ours, linked into somebody else's folder");
}

#[test]
fn what_is_excepted_is_not_looked_into() {
    let bench = Bench::new("except");
    let owner = rustix::process::geteuid().as_raw();
    let (hidden, folder) = (bench.work.join(".env"), bench.work.join("out"));
    let except = vec![hidden.as_path(), folder.as_path()];
    let (workspace, place) = (bench.work.as_path(), bench.work.as_path());
    let direct = Direct::open(&Writable { workspace, place, is_folder: true, except, owner }).expect("it is there");
    for name in [".env", "out/a", "b"] {
        bench.put(name, name);
    }
    let gathered = bench.gather(direct, "**", &Without(b"SECRET"));
    assert_eq!(fates(&gathered), [("b".to_owned(), "released")]);
}

#[test]
fn a_single_file_can_be_what_is_written_to() {
    let bench = Bench::new("single");
    bench.put("out/a", "");
    let owner = rustix::process::geteuid().as_raw();
    let place = bench.work.join("out/a");
    let writable = Writable { workspace: &bench.work, place: &place, is_folder: false, except: Vec::new(), owner };
    let direct = Direct::open(&writable).expect("it is there");
    bench.put("out/a", "written");
    bench.put("out/b", "by somebody else");
    let gathered = bench.gather(direct, "out", &Without(b"SECRET"));
    assert_eq!(fates(&gathered), [("out/a".to_owned(), "released")]);
}

#[test]
fn a_file_that_grows_while_it_is_read_is_withheld_and_not_a_byte_more_is_written() {
    let bench = Bench::new("grows");
    let blobs = bench.store.blobs();
    let folder = blobs.hold().expect("a folder");
    let mut draft = Draft::new(&folder, &new_id().expect("an id")).expect("a draft");
    assert_eq!(draft.fill(std::io::repeat(7), 100_000).expect("it can be written"), None);
    assert!(draft.contents().expect("it is there").metadata().expect("it is a file").len() <= 100_000);
    drop(draft);
    let mut draft = Draft::new(&folder, &new_id().expect("an id")).expect("a draft");
    assert_eq!(draft.fill(&b"short"[..], 6).expect("it can be written"), None, "or shrinks");
    draft.discard().expect("it goes");
    assert!(bench.blobs().is_empty());
}

#[test]
fn what_is_old_goes_and_what_two_share_stays_until_both_are_gone() {
    let bench = Bench::new("old");
    let direct = bench.direct();
    bench.put("out/a", "same");
    bench.put("out/b", "same");
    bench.put("out/c", "other");
    let gathered = bench.gather(direct, "out", &Without(b"SECRET"));
    let mut state = bench.store.state().expect("a state");
    assert_eq!(bench.blobs().len(), 2);
    remove(&bench.store, &mut state, &gathered.artifacts[0].id).expect("it goes");
    assert_eq!(text(&bench, &gathered.artifacts[1].id).expect("it is shared"), b"same");
    fs::write(bench.store.blobs().folder().join(format!("{}.draft", new_id().expect("an id"))), "left").expect("one");

    // Nobody collects while somebody keeps something.
    let held = bench.store.blobs().hold().expect("it is there");
    let collected = keep::collect(&bench.store, &mut state, 3600, false).expect("it is collected");
    assert_eq!((bench.blobs().len(), collected.bytes), (3, 0));
    drop(held);
    keep::collect(&bench.store, &mut state, 3600, false).expect("it is collected");
    assert_eq!(bench.blobs().len(), 2, "the draft of somebody who was killed is gone, and what is young is not");

    let told = keep::collect(&bench.store, &mut state, 0, true).expect("it is told");
    assert_eq!((told.removed.len(), bench.blobs().len()), (2, 2));
    keep::collect(&bench.store, &mut state, 0, false).expect("it is collected");
    assert!(bench.blobs().is_empty() && state.artifacts().expect("a state").is_empty());
}

#[test]
fn they_are_found_by_the_start_of_a_run_and_the_last_run_is_the_last() {
    let bench = Bench::new("list");
    let runs: RefCell<Vec<String>> = RefCell::default();
    for name in ["a", "b"] {
        let direct = bench.direct();
        bench.put(&format!("out/{name}"), name);
        runs.borrow_mut().push(bench.gather(direct, &format!("out/{name}"), &Without(b"SECRET")).run);
    }
    let mut state = bench.store.state().expect("a state");
    let mut paths = |of: Option<&str>| -> Result<Vec<String>> {
        let list = list(&bench.store, &mut state, of)?;
        Ok(list.iter().map(|artifact| artifact.path.display().to_string()).collect())
    };
    assert_eq!(paths(None).expect("all"), ["out/b", "out/a"]);
    assert_eq!(paths(Some("last")).expect("the last"), ["out/b"]);
    assert_eq!(paths(Some(&runs.borrow()[0][..12])).expect("the first"), ["out/a"]);
    assert!(matches!(paths(Some("nobody")), Err(Error::NoArtifacts(_))));
}
