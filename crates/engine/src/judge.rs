//! The first stage: is the request well-formed, does the policy allow it, and if it asks, does a person?

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use model::{Approval, Denied, Grant, Outcome, Pending, Question, Refusal, Request, Retry, SetupFailure, Verdict};

use policy::{Facts, Policy};

use crate::approvals::Terms;
use crate::policies::{self, Loaded, recorded};
use crate::rates::{self, Slots};
use crate::user::User;
use crate::{Engine, survey};

/// A request that may go on. As long as it is kept, it counts as one of its agent's runs.
pub struct Admitted {
    pub grant: Grant,
    _slots: Slots,
}

impl Engine {
    /// Judges, and asks a person where the policy does.
    pub(crate) fn admit(&self, request: &Request) -> Result<Admitted, Outcome> {
        let (verdict, loaded, slots) = self.judge(request, |loaded, facts| {
            let slots = rates::enter(loaded, &facts.principal)?;
            if !loaded.policy.is_built_in() {
                recorded::write(&policy::envelopes(request, facts), self.workspaces.watch());
            }
            Ok(slots)
        })?;
        for note in &loaded.policy.notes {
            self.workspaces.watch().warn(note);
        }
        let grant = match verdict {
            Verdict::Allowed(grant) => *grant,
            Verdict::Ask(pending) => self.ask(*pending, &loaded)?,
            Verdict::Refused(refusal) => return Err(Outcome::Refused(refusal)),
        };
        Ok(Admitted { grant, _slots: slots })
    }

    /// The same without asking anybody: what would have to be asked is a refusal that says so.
    pub(crate) fn foresee(&self, request: &Request) -> Result<Grant, Outcome> {
        match self.judge(request, |_, _| Ok(Slots::default()))?.0 {
            Verdict::Allowed(grant) => Ok(*grant),
            Verdict::Ask(pending) => Err(Outcome::Refused(would_ask(pending.question()))),
            Verdict::Refused(refusal) => Err(Outcome::Refused(refusal)),
        }
    }

    fn judge(
        &self,
        request: &Request,
        enter: impl FnOnce(&Loaded, &Facts) -> Result<Slots, Outcome>,
    ) -> Result<(Verdict, Loaded, Slots), Outcome> {
        if request.command.first().is_none_or(|program| program.is_empty()) {
            return Err(usage("there is no command to run".to_owned(), "put it after `--`: `belljar run -- ls`"));
        }
        validate(request)?;
        let user = User::of_the_process();
        let loaded = policies::load(&self.languages, &user, &survey::workspace_folders(request)?, None)?;
        let facts = survey::look(request, &user, &loaded)?;
        let slots = enter(&loaded, &facts)?;
        let verdict = policy::judge(request, &loaded.policy, &facts);
        Ok((verdict, loaded, slots))
    }

    fn ask(&self, pending: Pending, loaded: &Loaded) -> Result<Grant, Outcome> {
        let approval = self.ask_a_person(pending.question(), &loaded.policy).map_err(Outcome::Refused)?;
        pending.approved(&approval).map_err(Outcome::Refused)
    }

    /// As the policy says: who, and for how long.
    pub(crate) fn ask_a_person(&self, question: &Question, policy: &Policy) -> Result<Approval, Refusal> {
        let policy::Approving { timeout, approvers, always } = policy.approving();
        let terms = Terms { timeout, approvers, always };
        self.questions().ask(question, &terms, self.person.as_deref(), self.workspaces.watch())
    }
}

fn would_ask(question: &Question) -> Refusal {
    let Some(first) = question.reasons.first() else {
        return Refusal::new("silence", "nothing allows it".to_owned(), "see `belljar policy show`");
    };
    let denied = question.reasons.iter().map(|reason| Denied {
        action: reason.action,
        about: reason.about.clone(),
        rule: reason.rule.clone(),
        place: reason.place.clone(),
        reason: reason.why.clone(),
        grant: reason.grant.clone(),
        retry: Retry::AfterApproval,
    });
    let message = format!("a person would be asked about {} `{}`: {}", first.action, first.about, first.why);
    let hint = "`belljar run` asks, and waits for the answer";
    Refusal { denied: denied.collect(), unanswered: true, ..Refusal::new(&first.rule, message, hint) }
}

/// Most paths, variables and the like that one request may name.
const MOST: usize = 1000;
const LONGEST_PATH: usize = 4096;
/// The kernel takes no longer argument or variable.
const LONGEST_WORD: usize = 128 * 1024 - 1;
/// Most words of a command, and all of them together: a quarter of what the kernel takes.
const MOST_WORDS: usize = 65_536;
const LONGEST_COMMAND: usize = 2 << 20;
const LONGEST_NAME: usize = 64;

fn validate(request: &Request) -> Result<(), Outcome> {
    let paths = || {
        let granted = request.read.iter().chain(&request.write).chain(&request.hide).chain(&request.workspaces);
        granted.chain(&request.directory)
    };
    for path in paths() {
        let bytes = path.as_os_str().as_bytes();
        let shown = path.display().to_string().escape_debug().to_string();
        if bytes.is_empty() {
            return Err(usage("a path is empty".to_owned(), "name a folder or a file"));
        }
        if bytes.len() > LONGEST_PATH {
            return Err(usage(
                format!("a path is {} bytes long; {LONGEST_PATH} is the most", bytes.len()),
                "use a shorter one",
            ));
        }
        if bytes.iter().any(u8::is_ascii_control) {
            return Err(usage(format!("the path `{shown}` has a control character in it"), "rename it"));
        }
    }
    if paths().count() > MOST || request.environment.len() > MOST {
        return Err(usage(format!("more than {MOST} paths or variables are named"), "name folders rather than files"));
    }
    if request.command.len() > MOST_WORDS {
        return Err(usage(
            format!("the command has {} words; {MOST_WORDS} is the most", request.command.len()),
            "pass them in a file or on standard input",
        ));
    }
    let total: usize = request.command.iter().map(|word| word.len() + 1).sum();
    if total > LONGEST_COMMAND {
        return Err(usage(
            format!("the command has {total} bytes; {LONGEST_COMMAND} is the most"),
            "pass them in a file or on standard input",
        ));
    }
    for argument in &request.command {
        check_word("an argument of the command", argument)?;
    }
    for (name, value) in &request.environment {
        let bytes = name.as_bytes();
        let known = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if bytes.is_empty() || !bytes.iter().all(known) || bytes[0].is_ascii_digit() {
            let shown = name.to_string_lossy().escape_debug().to_string();
            return Err(usage(
                format!("`{shown}` is no name for a variable"),
                "use letters, digits and `_`: `--env NAME=VALUE`",
            ));
        }
        if let Some(value) = value {
            check_word("the value of a variable", value)?;
        }
    }
    if let Some(agent) = &request.agent {
        let known = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
        if agent.is_empty() || agent.len() > LONGEST_NAME || !agent.chars().all(known) {
            return Err(usage(
                format!("`{}` is no name for an agent", agent.escape_debug()),
                &format!("use up to {LONGEST_NAME} letters, digits, `-`, `_`, `.` and `@`"),
            ));
        }
    }
    Ok(())
}

fn check_word(what: &str, text: &OsStr) -> Result<(), Outcome> {
    if text.as_bytes().contains(&0) {
        return Err(usage(format!("{what} has a zero byte in it"), "pass it in a file or on standard input"));
    }
    if text.len() > LONGEST_WORD {
        return Err(usage(
            format!("{what} is {} bytes long; {LONGEST_WORD} is the most", text.len()),
            "pass it in a file or on standard input",
        ));
    }
    Ok(())
}

pub(crate) fn usage(message: String, fix: &str) -> Outcome {
    Outcome::NotSetUp(SetupFailure { wall: None, message, fix: fix.to_owned(), layers: false })
}
