//! The folder of secrets in hostile hands: torn, foreign, planted, swapped; and many hands at once.
// What is skipped is said.
#![allow(clippy::print_stderr)]

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use belljar_vault::{Error, Vault};
use model::{NewSecret, SecretSource, SecretText};

const VALUE: &str = "fish-under-glass-9137";
/// The same, as others would write it.
const SPELLINGS: [&str; 3] = [VALUE, "ZmlzaC11bmRlci1nbGFzcy05MTM3", "666973682d756e6465722d676c6173732d39313337"];

/// A state folder of its own, removed afterwards.
struct Desk(PathBuf);

impl Desk {
    fn make(name: &str) -> Desk {
        let root = std::env::temp_dir().join(format!("belljar-vault-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("a folder for the test");
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
        Desk(root)
    }

    fn folder(&self) -> PathBuf {
        self.0.join("secrets")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn vault(&self) -> Vault {
        Vault::at(self.folder())
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn new(name: &str, source: &str, value: Option<&str>) -> NewSecret {
    NewSecret {
        name: name.to_owned(),
        source: SecretSource::read(source).expect("a source"),
        value: value.map(|value| SecretText::read(value.as_bytes()).expect("a value")),
        hosts: None,
        ttl: None,
        variable: None,
        prefix: None,
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o7777
}

/// The complaint, which has nothing of a value, and a fix.
fn complaint<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.expect_err("it is refused");
    let text = format!("{error}; {}; {error:?}", error.fix());
    assert!(!error.fix().is_empty());
    for spelling in SPELLINGS {
        assert!(!text.contains(spelling), "{text}");
    }
    text
}

#[test]
fn a_value_comes_back_as_it_went_in_and_lies_nowhere_in_clear() {
    let desk = Desk::make("round-trip");
    assert_eq!(desk.vault().list().expect("none yet"), []);
    assert!(!desk.folder().exists(), "whoever only looks makes nothing");
    let asked = NewSecret { hosts: Some(vec!["API.example.org".to_owned()]), ..new("TOKEN", "store", Some(VALUE)) };
    desk.vault().set(&asked).expect("it is kept");
    let fetched = desk.vault().fetch("TOKEN").expect("it is there");
    assert_eq!(fetched.value.reveal(), VALUE);
    assert_eq!((fetched.expires, fetched.about.hosts.as_slice()), (None, &["api.example.org".to_owned()][..]));
    assert!(!format!("{fetched:?}").contains(VALUE));
    assert_eq!(mode(&desk.folder()), 0o700);
    for entry in std::fs::read_dir(desk.folder()).expect("it is there") {
        let path = entry.expect("a name").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("ours")).into_owned();
        assert!(SPELLINGS.iter().all(|spelling| !text.contains(spelling)), "{}", path.display());
    }
    // A new value under the same name; what was not said again stays.
    desk.vault().set(&new("TOKEN", "store", Some("another-value"))).expect("it is replaced");
    let fetched = desk.vault().fetch("TOKEN").expect("it is there");
    assert_eq!((fetched.value.reveal(), fetched.about.hosts.len()), ("another-value", 1));
    desk.vault().remove("TOKEN").expect("it is removed");
    assert!(complaint(desk.vault().fetch("TOKEN")).contains("no secret `TOKEN`"));
}

#[test]
fn a_torn_or_foreign_file_is_told_by_name_and_can_be_removed_or_set_anew() {
    let desk = Desk::make("torn");
    desk.vault().set(&new("TOKEN", "store", Some(VALUE))).expect("it is kept");
    let whole = std::fs::read(desk.file("TOKEN.secret")).expect("ours");
    for length in 0..whole.len() {
        std::fs::write(desk.file("TOKEN.secret"), &whole[..length]).expect("a torn file");
        assert!(complaint(desk.vault().fetch("TOKEN")).contains("`TOKEN`"), "cut to {length}");
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(desk.file("TOKEN.secret"), &bytes).expect("a damaged file");
        complaint(desk.vault().fetch("TOKEN"));
    }
    let list = desk.vault().list().expect("it is listed");
    assert!(list[0].trouble.is_some(), "{list:?}");
    desk.vault().set(&new("TOKEN", "store", Some(VALUE))).expect("it is set anew");
    assert_eq!(desk.vault().fetch("TOKEN").expect("it is there").value.reveal(), VALUE);
    std::fs::write(desk.file("TOKEN.secret"), b"\xff\0 somebody else's").expect("a foreign file");
    complaint(desk.vault().fetch("TOKEN"));
    desk.vault().remove("TOKEN").expect("it can be removed all the same");
    assert!(!desk.file("TOKEN.secret").exists());
}

#[test]
fn who_changes_where_a_secret_may_go_or_swaps_two_makes_them_unusable() {
    let desk = Desk::make("swapped");
    let hosts = Some(vec!["api.example.org".to_owned()]);
    desk.vault().set(&NewSecret { hosts: hosts.clone(), ..new("A", "store", Some(VALUE)) }).expect("it is kept");
    desk.vault().set(&NewSecret { hosts, ..new("B", "env:PATH", None) }).expect("it is kept");
    for name in ["A", "B"] {
        let path = desk.file(&format!("{name}.secret"));
        let text = std::fs::read_to_string(&path).expect("ours").replace("api.example.org", "api.example.net");
        std::fs::write(&path, text).expect("ours");
        assert!(complaint(desk.vault().fetch(name)).contains("was changed"));
    }
    // What was changed has no say in what is set next.
    desk.vault().set(&new("A", "store", Some(VALUE))).expect("it is set anew");
    assert_eq!(desk.vault().fetch("A").expect("it is there").about.hosts, [] as [String; 0]);
    std::fs::copy(desk.file("A.secret"), desk.file("B.secret")).expect("ours");
    assert!(complaint(desk.vault().fetch("B")).contains("another secret"));
}

#[test]
fn what_others_can_read_or_what_leads_elsewhere_is_not_used() {
    let desk = Desk::make("planted");
    desk.vault().set(&new("TOKEN", "store", Some(VALUE))).expect("it is kept");
    let chmod = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    };
    for (path, open, closed) in [
        (desk.file("TOKEN.secret"), 0o640, 0o600),
        (desk.file("key"), 0o604, 0o600),
        (desk.folder(), 0o750, 0o700),
        (desk.0.clone(), 0o770, 0o700),
    ] {
        chmod(&path, open);
        assert!(complaint(desk.vault().fetch("TOKEN")).contains("others may"), "{}", path.display());
        chmod(&path, closed);
    }
    // A link in the place of each file, and of the folder.
    for name in ["TOKEN.secret", "key"] {
        std::fs::rename(desk.file(name), desk.0.join("aside")).expect("ours");
        symlink(desk.0.join("aside"), desk.file(name)).expect("a link");
        assert!(complaint(desk.vault().fetch("TOKEN")).contains("it is a link"), "{name}");
        std::fs::rename(desk.0.join("aside"), desk.file(name)).expect("ours");
    }
    std::fs::remove_file(desk.file("lock")).expect("ours");
    symlink("/dev/null", desk.file("lock")).expect("a link");
    assert!(complaint(desk.vault().set(&new("B", "store", Some(VALUE)))).contains("it is a link"));
    std::fs::remove_file(desk.file("lock")).expect("ours");
    std::fs::hard_link(desk.file("key"), desk.0.join("second")).expect("ours");
    assert!(complaint(desk.vault().fetch("TOKEN")).contains("another name"));
    std::fs::remove_file(desk.0.join("second")).expect("ours");
    std::fs::rename(desk.folder(), desk.0.join("real")).expect("ours");
    symlink(desk.0.join("real"), desk.folder()).expect("a link");
    assert!(complaint(desk.vault().fetch("TOKEN")).contains("it is a link"));
    assert!(complaint(desk.vault().set(&new("B", "store", Some(VALUE)))).contains("it is a link"));
}

#[test]
fn what_belongs_to_another_user_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a file to another user");
        return;
    }
    let desk = Desk::make("owner");
    desk.vault().set(&new("TOKEN", "store", Some(VALUE))).expect("it is kept");
    for path in [desk.file("TOKEN.secret"), desk.file("key"), desk.folder(), desk.0.clone()] {
        std::os::unix::fs::chown(&path, Some(12345), None).expect("we are root");
        assert!(complaint(desk.vault().fetch("TOKEN")).contains("belongs to user 12345"), "{}", path.display());
        std::os::unix::fs::chown(&path, Some(0), None).expect("we are root");
    }
}

#[test]
fn a_key_that_is_damaged_or_gone_is_told_with_a_fix_and_nothing_is_deleted() {
    let desk = Desk::make("key");
    desk.vault().set(&new("TOKEN", "store", Some(VALUE))).expect("it is kept");
    let key = std::fs::read(desk.file("key")).expect("ours");
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(desk.folder()).expect("ours").map(|e| e.expect("a name").file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for length in 0..key.len() {
        std::fs::write(desk.file("key"), &key[..length]).expect("a torn key");
        let text = complaint(desk.vault().fetch("TOKEN"));
        assert!(text.contains("secrets/key") && text.contains("backup"), "{text}");
        complaint(desk.vault().set(&new("OTHER", "store", Some(VALUE))));
        assert_eq!(
            std::fs::read(desk.file("key")).expect("ours"),
            &key[..length],
            "nothing was mended behind our back"
        );
    }
    assert_eq!(names(), before);
    std::fs::remove_file(desk.file("key")).expect("ours");
    assert!(complaint(desk.vault().set(&new("OTHER", "store", Some(VALUE)))).contains("it is not there"));
    assert!(!desk.file("key").exists(), "a new key would hide that the old one is gone");
    std::fs::write(desk.file("key"), &key).expect("put back");
    std::fs::set_permissions(desk.file("key"), std::fs::Permissions::from_mode(0o600)).expect("ours");
    assert_eq!(desk.vault().fetch("TOKEN").expect("it is there").value.reveal(), VALUE);
    // Another key is not this one.
    let other = Desk::make("other-key");
    other.vault().set(&new("TOKEN", "store", Some(VALUE))).expect("it is kept");
    std::fs::copy(other.file("key"), desk.file("key")).expect("ours");
    assert!(complaint(desk.vault().fetch("TOKEN")).contains("not sealed with the key"));
    // Without a key, a secret can still be removed; then a new key is made.
    std::fs::remove_file(desk.file("key")).expect("ours");
    desk.vault().remove("TOKEN").expect("it is removed");
    desk.vault().set(&new("TOKEN", "store", Some(VALUE))).expect("it is kept");
}

#[test]
fn many_writers_and_readers_at_once_lose_nothing_and_see_nothing_torn() {
    let desk = Desk::make("many");
    let value = |writer: usize, round: usize| format!("value-{writer}-{round}-").repeat(200);
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let (folder, value) = (desk.folder(), &value);
            scope.spawn(move || {
                for round in 0..10 {
                    let vault = Vault::at(&folder);
                    vault.set(&new("SHARED", "store", Some(&value(writer, round)))).expect("it is kept");
                    vault
                        .set(&new(&format!("OWN-{writer}"), "store", Some(&value(writer, round))))
                        .expect("it is kept");
                    let seen = vault.fetch("SHARED").expect("it is whole");
                    assert!((0..6).any(|w| (0..10).any(|r| value(w, r) == seen.value.reveal())));
                }
            });
        }
    });
    for writer in 0..6 {
        assert_eq!(desk.vault().fetch(&format!("OWN-{writer}")).expect("it is there").value.reveal(), value(writer, 9));
    }
    assert_eq!(desk.vault().list().expect("they are listed").len(), 7);
}

#[test]
fn what_a_killed_writer_left_is_no_secret_and_goes_with_the_next() {
    let desk = Desk::make("left");
    desk.vault().set(&new("TOKEN", "store", Some(VALUE))).expect("it is kept");
    let mut half = std::fs::File::create(desk.file("new-77")).expect("ours");
    half.write_all(b"belljar secret 1\n{").expect("ours");
    assert_eq!(desk.vault().list().expect("listed").len(), 1);
    desk.vault().set(&new("TOKEN", "store", Some(VALUE))).expect("it is kept");
    assert!(!desk.file("new-77").exists());
}

#[test]
fn a_command_is_asked_once_within_its_time_and_again_after_it() {
    let desk = Desk::make("ttl");
    let count = desk.0.join("count");
    let line = format!("cmd:echo x >> {0}; wc -l < {0} | sed s/^/token-/", count.display());
    let vault = desk.vault();
    vault.set(&NewSecret { ttl: Some(Duration::from_secs(3600)), ..new("SHORT", &line, None) }).expect("it is kept");
    for _ in 0..3 {
        let fetched = vault.fetch("SHORT").expect("it says it");
        assert_eq!(fetched.value.reveal(), "token-1");
        assert!(fetched.expires.is_some_and(|left| left > Duration::from_secs(3500)));
    }
    // Another process knows nothing of it: it was never on a disk.
    assert_eq!(desk.vault().fetch("SHORT").expect("it says it").value.reveal(), "token-2");
    vault.set(&new("SHORT", &line, None)).expect("set anew");
    assert_eq!(vault.fetch("SHORT").expect("it says it").value.reveal(), "token-3");
    vault.set(&NewSecret { ttl: Some(Duration::from_secs(1)), ..new("SHORT", &line, None) }).expect("set anew");
    let first = vault.fetch("SHORT").expect("it says it");
    assert_eq!(first.value.reveal(), "token-4");
    // Waits for what is tested: the end of its time.
    let began = std::time::Instant::now();
    while vault.fetch("SHORT").expect("it says it").value.reveal() == "token-4" {
        assert!(began.elapsed() < Duration::from_secs(20), "it never ends");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_command_that_is_late_talks_too_much_or_fails_is_ended_and_never_quoted() {
    let desk = Desk::make("commands");
    let vault = desk.vault().with_patience(Duration::from_millis(300));
    let mark = desk.0.join("survived");
    let fails = |line: &str| {
        vault.set(&new("CMD", &format!("cmd:{line}"), None)).expect("it is kept");
        let began = std::time::Instant::now();
        let text = complaint(vault.fetch("CMD"));
        assert!(began.elapsed() < Duration::from_secs(10), "{line}");
        assert!(text.contains("`CMD`"), "{text}");
        text
    };
    assert!(fails("sleep 60").contains("was ended"));
    assert!(fails(&format!("echo {VALUE}; sleep 60 & wait; touch {}", mark.display())).contains("was ended"));
    assert!(fails("exec >&-; sleep 60").contains("was ended"));
    assert!(!mark.exists());
    assert!(fails("yes glass").contains("more than 64 KiB"));
    assert!(fails("true").contains("it is empty"));
    assert!(fails(&format!("printf 'a\\n{VALUE}'")).contains("visible ASCII"));
    let text = fails(&format!("echo {VALUE}; echo the token {VALUE} is no good >&2; exit 3"));
    assert!(text.contains("the token [hidden] is no good") && text.contains("3"), "{text}");
    assert!(fails("there-is-no-such-program-here").contains("not found"));
    vault.set(&new("CMD", "cmd:cat; echo; echo >&2 chatter", None)).expect("it is kept");
    complaint(vault.fetch("CMD"));
    vault.set(&new("CMD", "cmd:cat; printf %s fine; echo >&2 chatter", None)).expect("it is kept");
    assert_eq!(vault.fetch("CMD").expect("it says it").value.reveal(), "fine");
}

#[test]
fn a_variable_is_read_when_it_is_used() {
    let desk = Desk::make("variable");
    desk.vault().set(&new("HOMELY", "env:PATH", None)).expect("it is kept");
    let path = std::env::var("PATH").expect("there is one");
    assert_eq!(desk.vault().fetch("HOMELY").expect("it is set").value.reveal(), path);
    desk.vault().set(&new("HOMELY", "env:BELLJAR_NO_SUCH_VARIABLE", None)).expect("it is kept");
    assert!(complaint(desk.vault().fetch("HOMELY")).contains("BELLJAR_NO_SUCH_VARIABLE"));
}

#[test]
fn what_is_not_in_order_is_refused_and_near_misses_are_told() {
    let desk = Desk::make("order");
    let set = |new: NewSecret| complaint(desk.vault().set(&new));
    for name in ["", "-a", "../key", "a/b", ".", "a\nb"] {
        assert!(set(new(name, "store", Some(VALUE))).contains("no name of a secret"), "{name:?}");
        complaint(desk.vault().fetch(name));
        complaint(desk.vault().remove(name));
    }
    assert!(set(new("A", "store", None)).contains("needs a value"));
    assert!(set(new("A", "env:B", Some(VALUE))).contains("takes no value"));
    assert!(
        set(NewSecret { hosts: Some(vec!["https://a".to_owned()]), ..new("A", "env:B", None) }).contains("no host")
    );
    assert!(set(NewSecret { variable: Some("A=B".to_owned()), ..new("A", "env:B", None) }).contains("variable"));
    assert!(set(NewSecret { prefix: Some("a b".to_owned()), ..new("A", "env:B", None) }).contains("stand-in"));
    assert!(set(NewSecret { ttl: Some(Duration::from_secs(9)), ..new("A", "env:B", None) }).contains("time to live"));
    assert!(!desk.folder().exists(), "nothing was made for any of them");
    desk.vault().set(&new("GITHUB_TOKEN", "env:PATH", None)).expect("it is kept");
    assert!(complaint(desk.vault().fetch("github_tokn")).contains("did you mean `GITHUB_TOKEN`?"));
    assert!(!complaint(desk.vault().remove("zzz")).contains("did you mean"));
}

#[test]
fn a_command_is_given_up_when_nobody_waits_for_it() {
    let desk = Desk::make("given-up");
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let vault = desk.vault().until(theirs.into());
    drop(ours);
    let line = SecretSource::read("cmd:exec sleep 1000").expect("a source");
    assert!(complaint(vault.fetch_from("TOKEN", &line, None)).contains("nobody waits for it"));
}

#[test]
fn where_a_secret_comes_from_is_said_without_asking_anybody() {
    let desk = Desk::make("source");
    let mark = desk.0.join("asked");
    let source = format!("cmd:touch {}; echo nothing-to-see >&2; exit 3", mark.display());
    let asked = NewSecret { ttl: Some(Duration::from_secs(5)), ..new("TOKEN", &source, None) };
    desk.vault().set(&asked).expect("it is kept");
    let (known, ttl, about) = desk.vault().source("TOKEN").expect("it is there");
    assert_eq!((known.to_string(), ttl, about.name.as_str()), (source, Some(Duration::from_secs(5)), "TOKEN"));
    assert!(!mark.exists());
    complaint(desk.vault().source("OTHER"));
    // What it complained about is for whoever wrote it.
    let error = desk.vault().fetch("TOKEN").expect_err("it fails");
    assert!(mark.exists() && error.to_string().contains("nothing-to-see"));
    assert_eq!(error.for_others(), "its command failed (exit status: 3)");
}
