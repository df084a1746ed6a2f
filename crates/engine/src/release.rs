//! The release gate: what a sandbox says, without the secrets that are known and those that look like some.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use model::{Outlet, Redacted, Streams};
use secrets::terminal::Cleaner;
use secrets::{Added, Formats, Redactor, Values};

/// What the output of one run passes through.
pub struct Release {
    /// Nothing: it is let through as it is.
    values: Option<Rc<Values>>,
    /// Those that are looked for besides; none: only ours.
    formats: Option<Formats>,
    counts: Counts,
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
        let values = redacts.then(|| Rc::new(known(environment)));
        Release { values, formats, counts: Counts::default(), input: RefCell::new(input) }
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
        }
    }

    fn outlet(&self, cleaner: Option<Cleaner>, nowhere: bool) -> Option<Box<dyn Outlet>> {
        if nowhere || self.values.is_none() && cleaner.is_none() {
            return None;
        }
        let (values, formats, counts) = (self.values.clone(), self.formats.clone(), self.counts.clone());
        Some(Box::new(Gate { values, formats, counts, redactor: None, cleaner, between: Vec::new() }))
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

/// One stream's way out. Made of little until something comes: most runs say nothing, or nothing on one of the two.
struct Gate {
    values: Option<Rc<Values>>,
    formats: Option<Formats>,
    counts: Counts,
    redactor: Option<Redactor>,
    /// For what is shown to a person.
    cleaner: Option<Cleaner>,
    between: Vec<u8>,
}

impl Gate {
    fn count(&self, redacted: secrets::Redacted) {
        let mut counts = self.counts.borrow_mut();
        for (what, times) in redacted.counts {
            *counts.entry(what).or_default() += times;
        }
    }

    /// Without secrets, but as it was drawn otherwise.
    fn redact(&mut self, bytes: &[u8]) {
        self.between.clear();
        match (&self.values, &mut self.redactor) {
            (None, _) => self.between.extend_from_slice(bytes),
            (Some(_), Some(redactor)) => redactor.push(bytes, &mut self.between),
            (Some(values), empty) => {
                let formats = self.formats.clone().unwrap_or_else(Formats::built_in);
                let redactor = empty.insert(Redactor::new(values, Some(&formats)));
                redactor.push(bytes, &mut self.between);
            }
        }
    }

    fn clean(&mut self, out: &mut Vec<u8>) {
        match &mut self.cleaner {
            None => out.append(&mut self.between),
            Some(cleaner) => cleaner.push(&self.between, out),
        }
    }
}

impl Outlet for Gate {
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.redact(bytes);
        self.clean(out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.rest(out);
        if let Some(cleaner) = &mut self.cleaner {
            cleaner.finish(out);
        }
    }

    fn holds(&self) -> bool {
        self.redactor.as_ref().is_some_and(|redactor| redactor.held() > 0)
    }

    fn rest(&mut self, out: &mut Vec<u8>) {
        self.between.clear();
        if let Some(mut redactor) = self.redactor.take() {
            let redacted = redactor.finish(&mut self.between);
            self.redactor = Some(redactor.another());
            self.count(redacted);
        }
        self.clean(out);
    }
}

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
fn known(environment: &[(OsString, OsString)]) -> Values {
    let mut values = Values::new();
    for (name, value) in environment {
        let name = name.to_string_lossy();
        if is_secret(&name) {
            match values.add(&name, value.as_bytes()) {
                Added::Kept => {}
                // Ordinary text has it too: what remains to be seen is left to the formats.
                Added::TooShort | Added::TooCommon | Added::TooLong => {}
            }
        }
    }
    values
}

/// Words of which a secret's name has one.
const NAMES: &[&str] = &[
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "API_KEY", "ACCESS_KEY",
    "PRIVATE_KEY", "SIGNING_KEY", "ENCRYPTION_KEY", "AUTH", "DSN", "DATABASE_URL", "CONNECTION_STRING", "WEBHOOK",
];
/// Names that have one of those words, and are where a secret is rather than the secret.
const PLACES: &[&str] = &["SSH_AUTH_SOCK", "XAUTHORITY"];

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let elsewhere = PLACES.contains(&name.as_str()) || ["_FILE", "_PATH", "_DIR"].iter().any(|end| name.ends_with(end));
    !elsewhere && NAMES.iter().any(|word| name.contains(word))
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
        for name in ["GITHUB_TOKEN", "aws_secret_access_key", "PGPASSWORD", "OPENAI_API_KEY", "DATABASE_URL"] {
            assert!(is_secret(name), "{name}");
        }
        for name in
            ["PATH", "HOME", "SSH_AUTH_SOCK", "TOKEN_FILE", "LANG", "KEYBOARD", "GOOGLE_APPLICATION_CREDENTIALS_PATH"]
        {
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
    fn what_goes_nowhere_is_not_looked_at() {
        let release = Release::new(true, &[], None, Vec::new());
        assert!(release.outlet(None, true).is_none());
        let null = std::fs::File::open("/dev/null").expect("it is there");
        assert!(is_nowhere(null.as_fd()));
        assert!(!is_nowhere(std::fs::File::open("/dev/zero").expect("it is there").as_fd()));
    }
}
