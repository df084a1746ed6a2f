//! The store by itself: what is whole is there, and nothing else ever is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};

use model::HostName;

use super::*;

struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Place(std::env::temp_dir().join(format!("belljar-cache-{}-{number}", std::process::id())))
    }

    fn cache(&self, most: u64) -> Cache {
        Cache::at(self.0.clone(), most).unwrap()
    }

    fn files(&self, part: &str) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = fs::read_dir(self.0.join(part)).unwrap().map(|one| one.unwrap().path()).collect();
        all.sort();
        all
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn key(path: &str) -> Key {
    let host = Host::Name(HostName::read("files.example.org").unwrap());
    Key::new(&Endpoint { host, port: 443 }, path).unwrap()
}

fn keep(cache: &Cache, path: &str, bytes: &[u8]) -> Option<String> {
    let mut keeping = cache.begin(&key(path), bytes.len() as u64, Told::default())?;
    for piece in bytes.chunks(1000) {
        keeping.takes(piece).unwrap();
    }
    Some(keeping.ends().unwrap())
}

fn find(cache: &Cache, path: &str) -> Result<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    match runtime.block_on(cache.find(&key(path))) {
        Found::Nothing => Err("nothing".to_owned()),
        Found::Damaged(digest) => Err(digest),
        Found::Whole(whole) => {
            let mut all = Vec::new();
            while all.len() < whole.entry.length as usize {
                all.extend(whole.piece(all.len() as u64).unwrap());
            }
            Ok(all)
        }
    }
}

const MUCH: u64 = 64 << 20;

#[test]
fn what_is_whole_is_found_by_its_own_name_and_by_no_other() {
    let place = Place::new();
    let cache = place.cache(MUCH);
    let long: Vec<u8> = (0..3 << 20).map(|at: u32| (at % 251) as u8).collect();
    assert_eq!(find(&cache, "/a.whl"), Err("nothing".to_owned()));
    let digest = keep(&cache, "/a.whl", &long).unwrap();
    assert_eq!(digest, blake3::hash(&long).to_hex().as_str());
    assert!(find(&cache, "/a.whl").unwrap() == long);
    assert_eq!(find(&cache, "/b.whl"), Err("nothing".to_owned()));
    // Another process of the same user.
    assert!(find(&place.cache(MUCH), "/a.whl").unwrap() == long);
    for (part, count) in [("names", 1), ("contents", 1), ("coming", 0)] {
        assert_eq!(place.files(part).len(), count, "{part}");
        let folder = fs::metadata(place.0.join(part)).unwrap().permissions().mode();
        assert_eq!(folder & 0o777, 0o700);
    }
    let file = fs::metadata(&place.files("contents")[0]).unwrap().permissions().mode();
    assert_eq!(file & 0o777, 0o600);
}

#[test]
fn what_is_not_all_there_is_never_there() {
    let place = Place::new();
    let cache = place.cache(MUCH);
    let begin = || cache.begin(&key("/a.whl"), 10, Told::default()).unwrap();
    let mut short = begin();
    short.takes(b"12345").unwrap();
    assert!(short.ends().is_err());
    let mut long = begin();
    assert!(long.takes(b"12345678901").is_err());
    assert!(long.ends().is_err());
    let mut left = begin();
    left.takes(b"1234567890").unwrap();
    drop(left);
    assert_eq!(find(&cache, "/a.whl"), Err("nothing".to_owned()));
    assert!(place.files("coming").is_empty() && place.files("contents").is_empty());
    assert_eq!(cache.writing.get(), 0);
}

#[test]
fn what_was_changed_on_the_disk_is_named_and_not_given() {
    let place = Place::new();
    let cache = place.cache(MUCH);
    let bytes = vec![7; 2 << 20];
    let change: [fn(&Path); 5] = [
        |file| fs::write(file, vec![8; 2 << 20]).unwrap(),
        |file| fs::write(file, [7; 10]).unwrap(),
        |file| fs::write(file, vec![7; (2 << 20) + 1]).unwrap(),
        |file| fs::write(file, []).unwrap(),
        |file| {
            let mut bytes = fs::read(file).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(file, bytes).unwrap();
        },
    ];
    for change in change {
        let digest = keep(&cache, "/a.whl", &bytes).unwrap();
        assert!(find(&cache, "/a.whl").unwrap() == bytes);
        change(&place.files("contents")[0]);
        assert_eq!(find(&cache, "/a.whl"), Err(digest));
        assert_eq!(find(&cache, "/a.whl"), Err("nothing".to_owned()), "it is gone");
    }
    // A link in its place leads nowhere, and neither does a name that says something else.
    keep(&cache, "/a.whl", &bytes).unwrap();
    let content = place.files("contents").remove(0);
    let elsewhere = place.0.join("elsewhere");
    fs::rename(&content, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &content).unwrap();
    assert_eq!(find(&cache, "/a.whl"), Err("nothing".to_owned()));
    keep(&cache, "/b.whl", b"another").unwrap();
    let other = fs::read(&place.files("names")[0]).unwrap();
    keep(&cache, "/a.whl", &bytes).unwrap();
    fs::write(place.0.join("names").join(key("/a.whl").name()), other).unwrap();
    assert_eq!(find(&cache, "/a.whl"), Err("unreadable".to_owned()));
    for text in ["", "belljar download 1\n", "x"] {
        fs::write(place.0.join("names").join(key("/b.whl").name()), text).unwrap();
        assert_eq!(find(&cache, "/b.whl"), Err("unreadable".to_owned()));
    }
}

#[test]
fn what_was_not_used_for_longest_makes_room() {
    let place = Place::new();
    let cache = place.cache(10_000);
    let used = |path: &str, seconds: u64| {
        let Some(entry) = read_entry(&place.0.join("names").join(key(path).name())).unwrap() else { panic!("{path}") };
        let file = File::open(place.0.join("contents").join(entry.digest)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    };
    for number in 0_u8..4 {
        keep(&cache, &format!("/{number}.whl"), &[number; 2400]).unwrap();
        used(&format!("/{number}.whl"), 100 + u64::from(number));
    }
    // Asked for: it is the newest now.
    assert!(find(&cache, "/0.whl").is_ok());
    keep(&cache, "/4.whl", &[4; 2400]).unwrap();
    let there: Vec<u8> = (0..5).filter(|number| find(&cache, &format!("/{number}.whl")).is_ok()).collect();
    assert_eq!(there, [0, 3, 4]);
    let bytes: u64 = place.files("contents").iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!(bytes <= 10_000, "{bytes}");
    assert_eq!(place.files("names").len(), 3, "names of what is gone are gone");
    assert_eq!(keep(&cache, "/5.whl", &[5; 2600]), None, "one file is no more than its part");
    assert!(Cache::at(place.0.clone(), 0).is_none());
}

#[test]
fn at_once_there_are_only_so_many_and_a_name_is_no_way_out() {
    let place = Place::new();
    let cache = place.cache(MUCH);
    let begin = |number: usize| cache.begin(&key(&format!("/{number}")), 5, Told::default());
    let all: Vec<Keeping> = (0..MOST_WRITING).map(|number| begin(number).unwrap()).collect();
    assert!(begin(99).is_none());
    drop(all);
    assert!(begin(99).is_some());
    let address = Endpoint { host: Host::Address("127.0.0.1".parse().unwrap()), port: 443 };
    assert_eq!(Key::new(&address, "/a"), None);
    let name = Endpoint { host: Host::Name(HostName::read("a.test").unwrap()), port: 443 };
    for bad in ["a".to_owned(), "/a\n".to_owned(), "/a b".to_owned(), format!("/{}", "a".repeat(5000))] {
        assert_eq!(Key::new(&name, &bad), None);
    }
    // Whatever is asked for: the file's name is made of sixteen digits.
    let odd = Key::new(&name, "/../../etc/passwd").unwrap();
    assert!(odd.name().len() == 64 && odd.name().bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn garbage_goes_and_what_is_being_written_stays() {
    let place = Place::new();
    let cache = place.cache(MUCH);
    keep(&cache, "/a.whl", b"some").unwrap();
    let under_way = cache.begin(&key("/b.whl"), 3, Told::default()).unwrap();
    fs::write(place.0.join("coming/1-0-0000000000000000"), "left by one who was killed").unwrap();
    let day = Duration::from_secs(86_400);
    let left = Collected { files: 1, bytes: 26 };
    assert_eq!(collect(&place.0, day, true), left);
    assert_eq!(collect(&place.0, day, false), left);
    assert_eq!((place.files("coming").len(), collect(&place.0, day, false)), (1, Collected::default()));
    assert!(find(&cache, "/a.whl").is_ok());
    drop(under_way);
    // Too old, however often it is used; and a clock that was set back makes nothing young.
    for stored in [now() - LIFE.as_secs(), now() + 1000] {
        keep(&cache, "/a.whl", b"some").unwrap();
        let name = place.0.join("names").join(key("/a.whl").name());
        let entry = read_entry(&name).unwrap().unwrap();
        fs::write(&name, Entry { stored, ..entry }.text()).unwrap();
        assert_eq!(collect(&place.0, day, true).files, 1);
        assert_eq!(find(&cache, "/a.whl"), Err("nothing".to_owned()));
    }
    assert_eq!(collect(&place.0, Duration::ZERO, false).files, 1);
    assert!(place.files("contents").is_empty() && place.files("names").is_empty());
    assert_eq!(collect(Path::new("/nowhere"), day, false), Collected::default());
}

#[test]
fn a_folder_that_others_can_write_to_is_not_used() {
    let place = Place::new();
    let cache = place.cache(MUCH);
    keep(&cache, "/a.whl", b"some").unwrap();
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(keep(&cache, "/b.whl", b"some"), None);
    assert_eq!(find(&cache, "/a.whl"), Err("nothing".to_owned()));
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(find(&cache, "/a.whl").is_ok());
}
