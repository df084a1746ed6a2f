//! The release gate: what a sandbox says, without the secrets that are known and those that look like some.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use model::{Outlet, Redacted, Streams, Unguarded};
use secrets::terminal::Cleaner;
use secrets::{Added, Formats, Redactor, Values};

use crate::fresh::Fresh;

/// What the output of one run passes through.
pub struct Release {
    /// None: it is let through as it is.
    values: Option<Rc<Values>>,
    /// Values that come while it runs.
    fresh: Option<Rc<Fresh>>,
    /// Those that are looked for besides; none: only ours.
    formats: Option<Formats>,
    counts: Counts,
    unguarded: Vec<Unguarded>,
    /// What was read of the input already.
    input: RefCell<Vec<u8>>,
}

type Counts = Rc<RefCell<BTreeMap<String, u64>>>;

impl Release {
    pub fn new(
        redacts: bool,
        environment: &[(OsString, OsString)],
        formats: Option<Formats>,
        input: Vec<u8>,
    ) -> Release {
        let (values, unguarded) = match redacts {
            true => {
                let (values, unguarded) = known_and_not(environment);
                (Some(Rc::new(values)), unguarded)
            }
            false => (None, Vec::new()),
        };
        Release { values, fresh: None, formats, counts: Counts::default(), unguarded, input: RefCell::new(input) }
    }

    /// The same, where more values may come.
    pub fn learning(self, fresh: Option<Rc<Fresh>>) -> Release {
        Release { fresh, ..self }
    }

    /// Variables that are secrets by their names, and whose values are not looked for.
    pub fn unguarded(&self) -> &[Unguarded] {
        &self.unguarded
    }

    pub fn streams(&self) -> Streams {
        let stdout = rustix::termios::isatty(rustix::stdio::stdout());
        let stderr = rustix::termios::isatty(rustix::stdio::stderr());
        Streams {
            input: self.input.borrow().clone(),
            output: self.outlet(stdout.then(Cleaner::new), is_nowhere(rustix::stdio::stdout())),
            error: self.outlet(stderr.then(Cleaner::new), is_nowhere(rustix::stdio::stderr())),
            // Whoever has a terminal of their own draws on it as they like; a secret is none of that.
            terminal: self.outlet(Some(Cleaner::of_a_screen()), false),
            witness: None,
            outside: None,
            apart: false,
        }
    }

    /// Another way out for what is kept rather than shown: only without secrets, which are counted once.
    pub fn apart(&self) -> Option<Box<dyn Outlet>> {
        let (values, formats) = (self.values.clone(), self.formats.clone());
        let (fresh, unguarded) = (self.fresh.clone(), Vec::new());
        let input = RefCell::default();
        Release { values, fresh, formats, unguarded, counts: Counts::default(), input }.outlet(None, false)
    }

    /// The contents of files and other texts, each by itself.
    pub fn of_files(&self) -> OfFiles {
        let fresh = self.fresh.as_ref().filter(|_| self.values.is_some()).and_then(|fresh| fresh.since(0));
        let values = fresh.map(|(_, values)| values).or_else(|| self.values.clone());
        OfFiles { values, formats: self.formats.clone(), of_all: OnceCell::new(), of_values: OnceCell::new() }
    }

    fn outlet(&self, cleaner: Option<Cleaner>, nowhere: bool) -> Option<Box<dyn Outlet>> {
        // Even what is let through as it is: its digest is in the record.
        if nowhere {
            return None;
        }
        let (values, formats, counts) = (self.values.clone(), self.formats.clone(), self.counts.clone());
        let (fresh, between) = (self.fresh.clone(), Vec::new());
        Some(Box::new(Gate {
            values,
            fresh,
            seen: 0,
            formats,
            counts,
            redactor: None,
            cleaner,
            binary: false,
            between,
        }))
    }

    /// What was taken out so far, the most frequent first.
    pub fn redacted(&self) -> Vec<Redacted> {
        let counts = self.counts.borrow();
        let mut list: Vec<Redacted> =
            counts.iter().map(|(what, times)| Redacted { what: what.clone(), times: *times }).collect();
        list.sort_by(|left, right| right.times.cmp(&left.times).then_with(|| left.what.cmp(&right.what)));
        list
    }
}

/// Takes secrets out of whole contents. What it is made of takes time, and is made once.
pub struct OfFiles {
    values: Option<Rc<Values>>,
    formats: Option<Formats>,
    of_all: OnceCell<Redactor>,
    of_values: OnceCell<Redactor>,
}

impl OfFiles {
    /// What may be told of it, and how much was taken out.
    pub fn told(&self, content: &[u8]) -> (Vec<u8>, u64) {
        let Some(values) = &self.values else { return (content.to_vec(), 0) };
        // As for streams: what is text up to its first byte that is none is looked at as text.
        let (text, data) = content.split_at(first_of_no_text(content).unwrap_or(content.len()));
        let mut out = Vec::with_capacity(content.len());
        let mut times = 0;
        if !text.is_empty() {
            let formats = || self.formats.clone().unwrap_or_else(Formats::built_in);
            let mut redactor = self.of_all.get_or_init(|| Redactor::new(values, Some(&formats()))).another();
            redactor.push(text, &mut out);
            times += redactor.finish(&mut out).total();
        }
        if !data.is_empty() {
            let mut redactor = self.of_values.get_or_init(|| Redactor::new(values, None)).another();
            redactor.push(data, &mut out);
            times += redactor.finish(&mut out).total();
        }
        (out, times)
    }
}

/// One stream's way out. Made of little until something comes: most runs say nothing, or nothing on one of the two.
struct Gate {
    values: Option<Rc<Values>>,
    /// Values that come while it runs, and how many of them are in `values`.
    fresh: Option<Rc<Fresh>>,
    seen: u64,
    formats: Option<Formats>,
    counts: Counts,
    redactor: Option<Redactor>,
    /// For what is shown to a person.
    cleaner: Option<Cleaner>,
    /// What came is no text.
    binary: bool,
    between: Vec<u8>,
}

impl Gate {
    fn count(&self, redacted: secrets::Redacted) {
        let mut counts = self.counts.borrow_mut();
        for (what, times) in redacted.counts {
            *counts.entry(what).or_default() += times;
        }
    }

    /// Drops what acts, so that nothing is put together behind the redactor's back.
    fn clean(&mut self, bytes: &[u8]) {
        self.between.clear();
        match &mut self.cleaner {
            None => self.between.extend_from_slice(bytes),
            Some(cleaner) => cleaner.push(bytes, &mut self.between),
        }
    }

    /// Goes on with all values that are known now, from what is held back on.
    fn learn(&mut self) {
        let more = self.fresh.as_ref().filter(|_| self.values.is_some()).and_then(|fresh| fresh.since(self.seen));
        let Some((seen, values)) = more else { return };
        (self.seen, self.values) = (seen, Some(values));
        if let Some(mut redactor) = self.redactor.take() {
            let (mut held, redacted) = redactor.hand_over();
            self.count(redacted);
            held.append(&mut self.between);
            self.between = held;
        }
    }

    fn redact(&mut self, out: &mut Vec<u8>) {
        // What a redactor is made of takes time, and most streams say nothing.
        if self.between.is_empty() {
            return;
        }
        self.learn();
        let Some(values) = &self.values else {
            out.append(&mut self.between);
            return;
        };
        let mut rest = self.between.as_slice();
        if !self.binary
            && let Some(first) = first_of_no_text(rest)
        {
            // No text: what looks like a token in it is most likely none, and an archive would be broken. What came
            // before is still looked at as text, so that a value that was cut is not let go in two halves.
            self.binary = true;
            if let Some(mut redactor) = self.redactor.take() {
                redactor.push(&rest[..first], out);
                rest = &rest[first..];
                let redacted = redactor.finish(out);
                self.count(redacted);
            }
        }
        let redactor = self.redactor.get_or_insert_with(|| match self.binary {
            true => Redactor::new(values, None),
            false => Redactor::new(values, Some(&self.formats.clone().unwrap_or_else(Formats::built_in))),
        });
        redactor.push(rest, out);
    }
}

impl Outlet for Gate {
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.clean(bytes);
        self.redact(out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.between.clear();
        let mut last = Vec::new();
        if let Some(cleaner) = &mut self.cleaner {
            cleaner.finish(&mut last);
        }
        self.between = last;
        self.redact(out);
        if let Some(mut redactor) = self.redactor.take() {
            let redacted = redactor.finish(out);
            self.count(redacted);
        }
    }

    /// A few letters may be the beginning of anything; more are held until it is known.
    fn holds(&self) -> bool {
        self.redactor.as_ref().is_some_and(|redactor| (1..SURE).contains(&redactor.held()))
    }

    fn rest(&mut self, out: &mut Vec<u8>) {
        if let Some(redactor) = &mut self.redactor {
            redactor.let_go(out);
        }
    }
}

/// A zero byte that is no half of a letter of two bytes.
fn first_of_no_text(bytes: &[u8]) -> Option<usize> {
    // Most text has none, and that is seen fast.
    if !bytes.contains(&0) {
        return None;
    }
    let is_letter = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at)).is_some_and(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t'))
    };
    let is_zero = |at: Option<usize>| at.and_then(|at| bytes.get(at)) == Some(&0);
    let is_wide = |at: usize| {
        let before = is_letter(at.checked_sub(1)) && (is_zero(at.checked_sub(2)) || is_zero(Some(at + 2)));
        let after = is_letter(Some(at + 1)) && (is_zero(at.checked_sub(2)) || is_zero(Some(at + 2)));
        before || after
    };
    bytes.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at).find(|at| !is_wide(*at))
}

/// So many letters of a secret are no accident.
const SURE: usize = 4;

/// Text that is kept, without the values that are known to be secrets.
pub fn without_known(text: &[u8], environment: &[(OsString, OsString)]) -> Vec<u8> {
    let values = known(environment);
    if values.is_empty() {
        return text.to_vec();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut redactor = Redactor::new(&values, None);
    redactor.push(text, &mut out);
    redactor.finish(&mut out);
    out
}

/// Values of variables whose names say that they are secrets: whoever finds one in a file and says it is not heard.
pub fn known(environment: &[(OsString, OsString)]) -> Values {
    known_and_not(environment).0
}

/// The same, and those that can't be looked for.
fn known_and_not(environment: &[(OsString, OsString)]) -> (Values, Vec<Unguarded>) {
    let mut values = Values::new();
    let mut unguarded: Vec<Unguarded> = Vec::new();
    for (name, value) in environment {
        let name = name.to_string_lossy();
        let parts = match is_secret(&name) {
            true => vec![value.as_bytes()],
            false => password_within(value.as_bytes()).into_iter().collect(),
        };
        for part in parts.into_iter().filter(|part| !part.trim_ascii().is_empty()) {
            let why = match values.add(&name, part) {
                Added::Kept => continue,
                // Ordinary text has it too: what remains to be seen is left to the formats.
                Added::TooShort => format!("its value has less than {} bytes", secrets::SHORTEST),
                Added::TooCommon => "ordinary text is full of its value".to_owned(),
                Added::TooLong => format!("its value has more than {} bytes", secrets::LONGEST),
            };
            let variable: String = name.chars().filter(|letter| !letter.is_control()).take(64).collect();
            if unguarded.len() < MOST_UNGUARDED && !unguarded.iter().any(|known| known.variable == variable) {
                unguarded.push(Unguarded { variable, why });
            }
        }
    }
    (values, unguarded)
}

/// More of them say no more.
const MOST_UNGUARDED: usize = 50;

/// Words of a name, between `_`, that say that it is a secret's; and endings of such words.
const WORDS: &[&str] = &[
    "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD", "PW", "CREDENTIAL",
    "CREDENTIALS", "APIKEY", "KEY", "PAT", "AUTH", "DSN", "WEBHOOK", "COOKIE", "JWT",
];
const ENDINGS: &[&str] = &["PASSWORD", "PASSWD", "TOKEN", "SECRET", "APIKEY"];
/// Names that have such a word, and are where a secret is, or which, rather than the secret.
const OTHERS: &[&str] = &["PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY"];

/// Names of pairs that came out of the vault begin like this: they are secrets, whatever they are called.
const OF_THE_VAULT: &str = "secret:";

/// Values of the vault in the form in which `Release::new` and `Record::is_for` take what nobody may see.
pub fn of_the_vault(fetched: &[(String, model::SecretText)]) -> Vec<(OsString, OsString)> {
    fetched.iter().map(|(name, value)| of_the_vault_by(name, value.reveal())).collect()
}

pub fn of_the_vault_by(name: &str, value: &str) -> (OsString, OsString) {
    (format!("{OF_THE_VAULT}{name}").into(), value.into())
}

fn is_secret(name: &str) -> bool {
    if name.starts_with(OF_THE_VAULT) {
        return true;
    }
    let name = name.to_ascii_uppercase();
    let elsewhere = ["_FILE", "_PATH", "_DIR", "_ID", "_NAME", "_SOCK", "_TYPE", "_URL"];
    if OTHERS.contains(&name.as_str()) || elsewhere.iter().any(|end| name.ends_with(end)) {
        return false;
    }
    let secret = |word: &str| WORDS.contains(&word) || ENDINGS.iter().any(|end| word.ends_with(end));
    name.split(['_', '-', '.']).any(secret) || name.contains("API_KEY")
}

/// What stands between `:` and `@` of an address.
fn password_within(value: &[u8]) -> Option<&[u8]> {
    let text = std::str::from_utf8(value).ok()?;
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    Some(password.as_bytes())
}

/// What is written there is seen by nobody.
fn is_nowhere(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| {
        let is_device = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_char_device();
        is_device && (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)) == (1, 3)
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn names_tell_which_variables_are_secrets() {
        for name in
            ["GITHUB_TOKEN", "aws_secret_access_key", "PGPASSWORD", "OPENAI_API_KEY", "DB_PASS", "STRIPE_KEY", "MY_PAT"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "SSH_AUTH_SOCK", "TOKEN_FILE", "LANG", "KEYBOARD", "GIT_AUTHOR_NAME", "PWD"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_known_value_does_not_pass_however_it_is_cut() {
        let environment = [("DEPLOY_TOKEN".into(), "fish-under-glass-9137".into())];
        let release = Release::new(true, &environment, None, Vec::new());
        let mut outlet = release.outlet(None, false).expect("it redacts");
        let mut out = Vec::new();
        for byte in b"a fish-under-glass-9137 b ZmlzaC11bmRlci1nbGFzcy05MTM3 c\n" {
            outlet.pass(&[*byte], &mut out);
        }
        outlet.end(&mut out);
        let text = String::from_utf8(out).expect("text");
        assert!(text.starts_with("a [redacted") && text.ends_with(" c\n"), "{text}");
        assert!(!text.contains("fish") && !text.contains("ZmlzaC"), "{text}");
        assert_eq!(release.redacted().iter().map(|redacted| redacted.times).sum::<u64>(), 2);
    }

    #[test]
    fn a_value_of_the_vault_does_not_pass_whatever_it_is_called() {
        let value = model::SecretText::read(b"fish-under-glass-9137").expect("a value");
        let known = of_the_vault(&[("build_id".to_owned(), value)]);
        let release = Release::new(true, &known, None, Vec::new());
        let mut outlet = release.outlet(None, false).expect("it redacts");
        let mut out = Vec::new();
        outlet.pass(b"a fish-under-glass-9137 b\n", &mut out);
        outlet.end(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), "a [redacted:secret_build_id] b\n");
    }

    #[test]
    fn a_value_that_is_fetched_meanwhile_does_not_pass_and_none_that_was_cut_then() {
        let old = of_the_vault_by("old", "fish-under-glass-9137");
        let (tells, hears) = crate::fresh::wires().expect("wires");
        let rail = Rc::new(crate::rail::Rail::new(Err(nowhere()), None, model::Principal::default()));
        let fresh = Rc::new(Fresh::new(hears, vec![old.clone()], rail));
        let release = Release::new(true, &[old], None, Vec::new()).learning(Some(fresh));
        let mut outlet = release.outlet(None, false).expect("it redacts");
        let mut out = Vec::new();
        outlet.pass(b"bird-over-bell-2244 fish-under-gl", &mut out);
        let message = crate::fresh::message("new", "bird-over-bell-2244");
        rustix::net::send(&tells, &message, rustix::net::SendFlags::empty()).expect("told");
        outlet.pass(b"ass-9137 bird-over-bell-2244 and\n", &mut out);
        outlet.end(&mut out);
        // What was said before it was fetched can't have been it.
        assert_eq!(
            String::from_utf8_lossy(&out),
            "bird-over-bell-2244 [redacted:secret_old] [redacted:secret_new] and\n"
        );
        assert_eq!(release.redacted().len(), 2);
    }

    fn nowhere() -> model::SetupFailure {
        model::SetupFailure { wall: None, message: String::new(), fix: String::new(), layers: false }
    }

    #[test]
    fn a_password_in_an_address_is_known() {
        assert_eq!(password_within(b"redis://user:glass-bell-77@cache.test:6379/0"), Some(&b"glass-bell-77"[..]));
        assert_eq!(password_within(b"https://example.test/a:b@c"), None);
    }

    #[test]
    fn what_is_no_text_is_not_changed_for_its_looks() {
        let release = Release::new(true, &[], None, Vec::new());
        let key = ["AKIA", "QYLPMN5HHHFPZAM2"].concat();
        for (bytes, passes) in [(format!("\0 {key} \n"), true), (format!("{key} \n"), false)] {
            let mut outlet = release.outlet(None, false).expect("it redacts");
            let mut out = Vec::new();
            outlet.pass(bytes.as_bytes(), &mut out);
            outlet.end(&mut out);
            assert_eq!(out == bytes.as_bytes(), passes, "{}", out.escape_ascii());
        }
    }

    #[test]
    fn text_of_two_bytes_a_letter_is_text() {
        let key = ["AKIA", "QYLPMN5HHHFPZAM2"].concat();
        for big in [false, true] {
            let unit = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
            let bytes: Vec<u8> = format!("\u{feff}key {key}\r\n").encode_utf16().flat_map(unit).collect();
            let release = Release::new(true, &[], None, Vec::new());
            let mut outlet = release.outlet(None, false).expect("it redacts");
            let mut out = Vec::new();
            outlet.pass(&bytes, &mut out);
            outlet.end(&mut out);
            let text = String::from_utf8_lossy(&out).replace('\0', "");
            assert!(text.contains("key [redacted:aws.access-key]") && !text.contains("QYLP"), "{text}");
        }
    }

    #[test]
    fn values_that_are_not_looked_for_are_said_to_be_and_never_what_they_are() {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let environment = [
            pair("DB_PASS", "abc12"),
            pair("AUTH", "password"),
            pair("EMPTY_TOKEN", ""),
            pair("API_KEY", "fish-under-glass-9137"),
            pair("CACHE", "redis://user:pw1@cache.test"),
            pair("LANG", "de"),
        ];
        let release = Release::new(true, &environment, None, Vec::new());
        let names: Vec<&str> = release.unguarded().iter().map(|one| one.variable.as_str()).collect();
        assert_eq!(names, ["DB_PASS", "AUTH", "CACHE"]);
        let told = format!("{:?}", release.unguarded());
        assert!(!told.contains("abc12") && !told.contains("pw1") && !told.contains("password"), "{told}");
        assert!(Release::new(false, &environment, None, Vec::new()).unguarded().is_empty());
    }

    #[test]
    fn a_value_that_comes_slowly_is_known_by_its_fourth_letter() {
        let environment = [("DEPLOY_TOKEN".into(), "fish-under-glass-9137".into())];
        let release = Release::new(true, &environment, None, Vec::new());
        let mut outlet = release.outlet(None, false).expect("it redacts");
        let mut out = Vec::new();
        for letter in b"fish-under-glass-9137\n" {
            outlet.pass(&[*letter], &mut out);
            if outlet.holds() {
                outlet.rest(&mut out);
            }
        }
        outlet.end(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), "fis[redacted:DEPLOY_TOKEN]\n");
    }

    #[test]
    fn a_value_that_was_cut_before_the_first_zero_byte_does_not_pass() {
        let environment = [("DEPLOY_TOKEN".into(), "fish-under-glass-9137".into())];
        let release = Release::new(true, &environment, None, Vec::new());
        for cut in 0..21 {
            let mut outlet = release.outlet(None, false).expect("it redacts");
            let mut out = Vec::new();
            let text = b"fish-under-glass-9137\0 and more";
            outlet.pass(&text[..cut], &mut out);
            outlet.pass(&text[cut..], &mut out);
            outlet.end(&mut out);
            let rest = &b"\0 and more"[..];
            assert_eq!(out, [b"[redacted:DEPLOY_TOKEN]", rest].concat(), "{cut}: {}", out.escape_ascii());
        }
    }

    #[test]
    fn what_is_taken_out_for_the_terminal_joins_no_secret() {
        let environment = [("DEPLOY_TOKEN".into(), "fish-under-glass-9137".into())];
        let release = Release::new(true, &environment, None, Vec::new());
        for cleaner in [Cleaner::new(), Cleaner::of_a_screen()] {
            let mut outlet = release.outlet(Some(cleaner), false).expect("it redacts");
            let mut out = Vec::new();
            outlet.pass(b"fish-under\x1b]0;t\x07-glass-9137\n", &mut out);
            outlet.end(&mut out);
            assert!(!String::from_utf8_lossy(&out).contains("fish-under-glass"), "{}", out.escape_ascii());
        }
    }

    #[test]
    fn a_stream_that_says_nothing_costs_nothing() {
        let (values, counts) = (Some(Rc::new(Values::new())), Counts::default());
        let (formats, redactor, between) = (None, None, Vec::new());
        let (fresh, seen) = (None, 0);
        let mut gate = Gate { values, fresh, seen, formats, counts, redactor, cleaner: None, binary: false, between };
        let mut out = Vec::new();
        gate.end(&mut out);
        assert!(gate.redactor.is_none() && out.is_empty());
    }

    #[test]
    fn what_goes_nowhere_is_not_looked_at() {
        let release = Release::new(true, &[], None, Vec::new());
        assert!(release.outlet(None, true).is_none());
        let null = std::fs::File::open("/dev/null").expect("it is there");
        assert!(is_nowhere(null.as_fd()));
        assert!(!is_nowhere(std::fs::File::open("/dev/zero").expect("it is there").as_fd()));
    }
}
