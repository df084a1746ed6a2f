//! What belljar itself tells and keeps may repeat a secret that was in what it was given: in a finding's excerpt, a
//! question, a refusal, a command that is remembered, a patch. It is taken out of those too.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use model::{Checked, Finding, Outcome, Patch, Question, Reason, Refusal, Request, Resource, Wording};
use secrets::{Formats, Redactor, Values};

use crate::{release, rules};

/// Letters in a row that may be a token, at least.
const TOKEN: usize = 8;

/// Takes secrets out of texts. Made of little until a text looks as if it had one.
pub struct Telling {
    environment: Vec<(OsString, OsString)>,
    values: OnceCell<Values>,
    /// For texts that only a value could be in, and for all others.
    of_values: OnceCell<Redactor>,
    of_all: OnceCell<Redactor>,
}

impl Telling {
    pub fn of_the_process() -> Telling {
        Telling::with(std::env::vars_os().collect())
    }

    /// Of the process, and what a request gives.
    pub fn of(request: &Request) -> Telling {
        let given = request.environment.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        Telling::with(std::env::vars_os().chain(given).collect())
    }

    pub fn with(environment: Vec<(OsString, OsString)>) -> Telling {
        Telling { environment, values: OnceCell::new(), of_values: OnceCell::new(), of_all: OnceCell::new() }
    }

    /// The same, which knows more.
    pub fn and(&self, more: (OsString, OsString)) -> Telling {
        Telling::with(self.environment.iter().cloned().chain([more]).collect())
    }

    pub fn findings(&self, findings: &mut [Finding]) {
        for Finding { message, excerpt, fix, .. } in findings {
            [message, excerpt, fix].into_iter().for_each(|text| self.text(text));
        }
    }

    /// As it is shown and kept. The last two bytes of what was taken out's digest tell questions apart that differ in
    /// nothing else: a yes to one is none to the other.
    pub fn question(&self, question: &Question) -> Question {
        let Question { principal, mut shown, mut reasons, mut findings, revision, digest } = question.clone();
        shown.iter_mut().for_each(|(_, value)| self.text(value));
        findings.iter_mut().for_each(|text| self.text(text));
        self.reasons(&mut reasons);
        let same = (&shown, &reasons, &findings) == (&question.shown, &question.reasons, &question.findings);
        if same {
            return question.clone();
        }
        shown.push(("without its secrets".to_owned(), digest.chars().take(4).collect()));
        Question::new(principal, shown, reasons, findings, revision)
    }

    pub fn checked(&self, mut checked: Checked) -> Checked {
        self.reasons(&mut checked.judgement.reasons);
        match &mut checked.envelope.resource {
            Resource::Command(words) => words.iter_mut().for_each(|word| self.text(word)),
            Resource::Shell(line) => self.text(line),
            // Paths and names are what they are.
            _ => {}
        }
        checked
    }

    /// What is remembered of a request.
    pub fn request(&self, request: &Request) -> Request {
        let word = |word: &OsString| OsString::from_vec(self.bytes(word.as_bytes()).unwrap_or_else(|| bytes(word)));
        Request { command: request.command.iter().map(word).collect(), ..request.clone() }
    }

    pub fn outcome(&self, mut outcome: Outcome) -> Outcome {
        match &mut outcome {
            Outcome::Ran(finished) => {
                for denial in &mut finished.denials {
                    denial.detail.iter_mut().for_each(|detail| self.text(detail));
                }
            }
            Outcome::Refused(Refusal { message, hint, denied, .. }) => {
                [message, hint].into_iter().for_each(|text| self.text(text));
                for one in denied {
                    [&mut one.about, &mut one.reason, &mut one.grant].into_iter().for_each(|text| self.text(text));
                }
            }
            Outcome::NotSetUp(failure) => self.text(&mut failure.message),
            Outcome::NotStarted(failure) => self.text(&mut failure.message),
        }
        outcome
    }

    pub fn patch(&self, bytes: Vec<u8>, wording: Wording) -> Patch {
        if wording == Wording::Exact {
            return Patch { bytes, taken_out: 0 };
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut taken_out = 0;
        // Lines that are added, taken away or stay, each side by itself: a key goes over many lines of one side.
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for side in lines.chunk_by(|one, other| one.first() == other.first()) {
            let Some(mark) = side[0].first().filter(|mark| b"+- ".contains(mark)) else {
                side.iter().for_each(|line| out.extend_from_slice(line));
                continue;
            };
            let text: Vec<u8> = side.iter().flat_map(|line| &line[1..]).copied().collect();
            let mut told = Vec::with_capacity(text.len());
            let mut redactor = self.of_all().another();
            redactor.push(&text, &mut told);
            taken_out += redactor.finish(&mut told).total();
            for line in told.split_inclusive(|byte| *byte == b'\n') {
                out.push(*mark);
                out.extend_from_slice(line);
            }
        }
        Patch { bytes: out, taken_out }
    }

    fn reasons(&self, reasons: &mut [Reason]) {
        for Reason { why, about, grant, .. } in reasons {
            [why, about, grant].into_iter().for_each(|text| self.text(text));
        }
    }

    pub fn text(&self, text: &mut String) {
        if let Some(told) = self.bytes(text.as_bytes()) {
            *text = String::from_utf8_lossy(&told).into_owned();
        }
    }

    /// Nothing if there is no secret in it.
    fn bytes(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut redactor = match may_have_one(text) {
            true => self.of_all().another(),
            false if self.values().is_empty() => return None,
            false => self.of_values.get_or_init(|| Redactor::new(self.values(), None)).another(),
        };
        let mut out = Vec::with_capacity(text.len());
        redactor.push(text, &mut out);
        (redactor.finish(&mut out).total() > 0).then_some(out)
    }

    fn values(&self) -> &Values {
        self.values.get_or_init(|| release::known(&self.environment))
    }

    fn of_all(&self) -> &Redactor {
        self.of_all.get_or_init(|| {
            // A user's file that is wrong stops every run, with its line. Here ours still count.
            let formats = rules::own_formats().ok().flatten().unwrap_or_else(Formats::built_in);
            Redactor::new(self.values(), Some(&formats))
        })
    }
}

/// Makes what our own formats are looked for with.
pub fn rehearse() {
    Redactor::new(&Values::default(), Some(&Formats::built_in()));
}

fn bytes(word: &OsStr) -> Vec<u8> {
    word.as_bytes().to_vec()
}

/// Most commands have nothing that a format could be about, and the formats take a millisecond to be made.
fn may_have_one(text: &[u8]) -> bool {
    // Without what joins words: names of folders have numbers behind them, and no token is made of such short parts.
    let is_token = u8::is_ascii_alphanumeric;
    let is_mixed = |word: &[u8]| {
        word.len() >= TOKEN && word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic)
    };
    // A digest: no format is of such digits with nothing around them.
    if text.iter().all(u8::is_ascii_hexdigit) {
        return false;
    }
    // What nobody sees may stand between two halves.
    let is_plain = text.iter().all(|byte| (b' '..=b'~').contains(byte) || matches!(byte, b'\n' | b'\t'));
    !is_plain || text.contains(&b'@') || text.split(|byte| !is_token(byte)).any(is_mixed)
}

#[cfg(test)]
mod tests {
    use model::{Action, Principal, Ruling, Severity, Spot};

    use super::*;

    const VALUE: &str = "fish-under-glass-9137";

    fn key() -> String {
        // Put together here, so that no scanner of sources takes this file for a leak.
        ["AKIA", "QYLPMN5HHHFPZAM2"].concat()
    }

    fn telling() -> Telling {
        Telling::with(vec![("DEPLOY_TOKEN".into(), VALUE.into())])
    }

    #[test]
    fn a_command_is_remembered_without_what_is_secret_in_it() {
        let command = ["curl", "-H", &format!("X: {VALUE}"), &format!("id={}", key())].map(OsString::from).to_vec();
        let request = Request { command, ..Request::default() };
        let words = telling().request(&request).command;
        assert_eq!(words, ["curl", "-H", "X: [redacted:DEPLOY_TOKEN]", "id=[redacted:aws.access-key]"]);
        // Formats alone, where no value is known.
        let words = Telling::with(Vec::new()).request(&request).command;
        assert_eq!(words[3], "id=[redacted:aws.access-key]");
    }

    #[test]
    fn ordinary_commands_make_no_redactor() {
        let telling = Telling::with(Vec::new());
        for word in ["cargo", "test", "-j4", "--release", "python3", "/usr/bin/python3", "--color=always", "x86_64"] {
            assert_eq!(telling.bytes(word.as_bytes()), None);
        }
        assert!(telling.of_all.get().is_none() && telling.of_values.get().is_none());
    }

    #[test]
    fn findings_repeat_no_secret() {
        let mut findings = [crate::inspect::not_scanned("a", Severity::Low, Spot::default(), &key())];
        findings[0].excerpt = format!("token = '{VALUE}'");
        telling().findings(&mut findings);
        assert_eq!(findings[0].excerpt, "token = '[redacted:DEPLOY_TOKEN]'");
        assert_eq!(findings[0].message, "it can't be scanned: [redacted:aws.access-key]");
    }

    #[test]
    fn questions_that_differ_in_a_secret_stay_two() {
        let question = |command: &str| {
            let reason = Reason {
                ruling: Ruling::Ask,
                rule: "a".to_owned(),
                place: String::new(),
                why: "b".to_owned(),
                action: Action::Exec,
                about: command.to_owned(),
                grant: String::new(),
            };
            let shown = vec![("command".to_owned(), command.to_owned())];
            let principal = Principal { user: "u".to_owned(), agent: None };
            Question::new(principal, shown, vec![reason], Vec::new(), "1".to_owned())
        };
        let plain = question("git push");
        assert_eq!(telling().question(&plain), plain);
        let one = telling().question(&question(&format!("curl -u {}", key())));
        let other = telling().question(&question(&format!("curl -u {}", key().replace("QYLP", "QYLM"))));
        assert_eq!(one.shown[0], ("command".to_owned(), "curl -u [redacted:aws.access-key]".to_owned()));
        assert_eq!(one.reasons[0].about, "curl -u [redacted:aws.access-key]");
        assert_eq!(one.shown[0], other.shown[0]);
        assert_ne!(one.digest, other.digest);
    }

    #[test]
    fn a_patch_says_what_changed_without_secrets() {
        let line = "Ab3".repeat(21);
        let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{line}x\n{line}y\n-----END RSA PRIVATE KEY-----\n");
        let side = |mark: &str| key.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
        let text = format!("--- a/k\n+++ b/k\n@@ -1,4 +1,5 @@\n{}{}+token {VALUE}\n stays\n", side("-"), side("+"));
        let Patch { bytes, taken_out } = telling().patch(text.clone().into_bytes(), Wording::WithoutSecrets);
        let told = String::from_utf8(bytes).expect("text");
        assert_eq!(taken_out, 3, "{told}");
        assert!(!told.contains(&line) && !told.contains(VALUE), "{told}");
        assert!(told.contains("\n-[redacted:private-key.rsa]\n-----") && told.ends_with("KEN]\n stays\n"), "{told}");
        assert_eq!(telling().patch(text.clone().into_bytes(), Wording::Exact).bytes, text.into_bytes());
    }

    #[test]
    fn a_refusal_repeats_no_secret() {
        let refusal = Refusal::new("rule", format!("`echo {VALUE}` is not allowed"), "see");
        let told = format!("{:?}", telling().outcome(Outcome::Refused(refusal)));
        assert!(told.contains("[redacted:DEPLOY_TOKEN]") && !told.contains(VALUE), "{told}");
    }
}
