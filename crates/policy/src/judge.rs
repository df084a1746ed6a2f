//! Request + policy + facts → verdict. Nothing in a request widens what the policy gives.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use model::paths::is_within;
use model::{
    Accepted, Access, Action, Asked, Command, Context, Envelope, Files, Finding, Grant, Ground, Limits, Network,
    Pending, Place, Powers, Question, Reason, Refusal, Request, Resource, Retry, Ruling, Verdict, Wall,
};

use crate::credentials;
use crate::facts::Facts;
use crate::network;
use crate::pattern::Care;
use crate::policy::Policy;
use crate::sheet::lowest;
use crate::system::{ENVIRONMENT, NEVER_WRITABLE, PRIVATE, TOOLCHAIN_VARIABLES};

pub fn judge(request: &Request, policy: &Policy, facts: &Facts) -> Verdict {
    let gift = Gift::of(policy, facts);
    let grant = match grant(request, policy, facts, &gift) {
        Ok(grant) => grant,
        Err(refusal) => return Verdict::Refused(refusal),
    };
    let judgements = envelopes(request, policy, facts).into_iter().map(|envelope| policy.weigh(&envelope));
    let mut reasons: Vec<Reason> = judgements.flat_map(|judgement| judgement.reasons).collect();
    reasons.extend(about_workspaces(policy, facts));
    reasons.extend(policy.weigh_findings(&facts.findings));
    reasons.extend(facts.reasons.iter().cloned());
    reasons.extend(about_image(policy, facts));
    match reasons.iter().map(|reason| reason.ruling).max().unwrap_or(Ruling::Deny) {
        Ruling::Allow => Verdict::Allowed(Box::new(grant), reasons),
        Ruling::Ask => {
            Verdict::Ask(Box::new(Pending::new(grant.clone(), question(request, policy, facts, &grant, reasons))))
        }
        Ruling::Deny => Verdict::Refused(refusal(&reasons)),
    }
}

/// Whoever asks chooses where they work, and sees what is there: a rule on that place is heard, a mere default is not.
fn about_workspaces(policy: &Policy, facts: &Facts) -> Vec<Reason> {
    let seen = facts.workspaces.iter().filter(|place| place.access != Access::Write);
    let judgements = seen.map(|place| {
        let path = Resource::Path(place.path.to_string_lossy().into_owned());
        policy.weigh(&envelope(facts, Action::Read, path))
    });
    let reasons = judgements.flat_map(|judgement| judgement.reasons);
    let counts = |reason: &Reason| {
        reason.ruling != Ruling::Allow && !reason.rule.starts_with("defaults.") && reason.rule != "silence"
    };
    reasons.filter(counts).collect()
}

/// Where the policy asks before it pulls, and somebody has looked whether the image is there.
fn about_image(policy: &Policy, facts: &Facts) -> Option<Reason> {
    let Ground::Image { name: Some(name), pull: true, .. } = &facts.ground else { return None };
    (policy.pulls() == Ruling::Ask).then(|| Reason {
        ruling: Ruling::Ask,
        rule: "isolation.pull".to_owned(),
        place: String::new(),
        why: "the container engine does not have this image, and would pull it".to_owned(),
        action: Action::Exec,
        about: name.clone(),
        grant: "`[isolation] pull = \"allow\"`, or have it there: `belljar image import`".to_owned(),
    })
}

/// Everything that a request asks for beyond what every sandbox gets.
pub fn envelopes(request: &Request, policy: &Policy, facts: &Facts) -> Vec<Envelope> {
    let envelope = |action, resource| envelope(facts, action, resource);
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let path = |place: &Place| Resource::Path(place.path.to_string_lossy().into_owned());
    let mut envelopes = vec![envelope(Action::Exec, Resource::Command(started(request, facts)))];
    for place in &facts.asked {
        let action = if place.access == Access::Read { Action::Read } else { Action::Write };
        envelopes.push(envelope(action, path(place)));
    }
    for place in facts.workspaces.iter().filter(|place| place.access == Access::Write) {
        envelopes.push(envelope(Action::Write, path(place)));
    }
    // A value that the asker gives is theirs already; one that is taken from around them may be a secret.
    for (name, _) in request.environment.iter().filter(|(_, value)| value.is_none()) {
        envelopes.push(envelope(Action::Environment, Resource::Variable(text(name))));
    }
    for wall in &request.accept_gaps {
        envelopes.push(envelope(Action::Gap, Resource::Wall(wall.name().to_owned())));
    }
    envelopes.extend(network::envelopes(request, policy, facts));
    envelopes
}

/// The command as it will be started: with the variables that are set for it, and from where the name leads to unless
/// that is one of the system's folders.
fn started(request: &Request, facts: &Facts) -> Vec<String> {
    let mut words: Vec<String> = request.command.iter().map(|word| spelled(word)).collect();
    let folder = facts.program.path.parent().and_then(Path::to_str);
    let is_standard = folder.is_some_and(|folder| shell::STANDARD.contains(&folder));
    if let Some(first) = words.first_mut()
        && !first.contains('/')
        && !is_standard
    {
        *first = facts.program.path.to_string_lossy().into_owned();
    }
    let set = request.environment.iter().filter_map(|(name, value)| {
        value.as_ref().map(|value| format!("{}={}", name.to_string_lossy(), spelled(value)))
    });
    let set: Vec<String> = set.collect();
    if !set.is_empty() {
        words = std::iter::once("env".to_owned()).chain(set).chain(words).collect();
    }
    words
}

/// For rules: no pattern is of bytes that are no text, so how they are written out matters to nobody.
fn spelled(word: &OsStr) -> String {
    word.to_str().map_or_else(|| word.as_encoded_bytes().escape_ascii().to_string(), str::to_owned)
}

/// For people, as a shell would read it: two words that differ never look the same, text or not.
fn quoted(word: &OsStr) -> String {
    match word.to_str() {
        Some(text) => shell::quoted(text),
        None => format!("$'{}'", word.as_encoded_bytes().escape_ascii()),
    }
}

pub fn envelope(facts: &Facts, action: Action, resource: Resource) -> Envelope {
    Envelope { principal: facts.principal.clone(), action, resource, context: context(facts) }
}

/// Where a request happens.
pub fn context(facts: &Facts) -> Context {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Context {
        directory: text(&facts.start),
        home: text(&facts.home),
        workspaces: facts.workspaces.iter().map(|place| text(&place.path)).collect(),
        workspace_mode: facts.workspace_mode,
    }
}

/// What a policy gives to every sandbox: of what one voice gives, that which no other takes away.
struct Gift {
    places: Vec<Place>,
    missing: Vec<Wall>,
    variables: Vec<OsString>,
}

impl Gift {
    fn of(policy: &Policy, facts: &Facts) -> Gift {
        let given = |action, resource| policy.weigh(&envelope(facts, action, resource)).ruling == Ruling::Allow;
        let is_given = |place: &&Place| {
            let action = if place.access == Access::Read { Action::Read } else { Action::Write };
            given(action, Resource::Path(place.path.to_string_lossy().into_owned()))
        };
        let passes = |name: &&OsString| {
            let name = name.to_string_lossy();
            policy.passes(&name) && given(Action::Environment, Resource::Variable(name.into_owned()))
        };
        let wall = |wall: &Wall| given(Action::Gap, Resource::Wall(wall.name().to_owned()));
        Gift {
            places: facts.given.iter().filter(is_given).cloned().collect(),
            missing: policy.accepted_missing().into_iter().filter(wall).collect(),
            variables: facts.environment.iter().map(|(name, _)| name).filter(passes).cloned().collect(),
        }
    }
}

fn refusal(reasons: &[Reason]) -> Refusal {
    let denials: Vec<&Reason> = reasons.iter().filter(|reason| reason.ruling == Ruling::Deny).collect();
    let Some(first) = denials.first() else {
        return Refusal::new(
            "silence",
            "no rule allows it, and silence denies".to_owned(),
            "see `belljar policy show`",
        );
    };
    let others = match denials.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let place = if first.place.is_empty() { String::new() } else { format!(" ({})", first.place) };
    let hint = format!("what would allow it: {}", first.grant);
    Refusal {
        denied: denials.iter().map(|reason| reason.denied(Retry::No)).collect(),
        ..Refusal::new(
            &format!("{}{place}", first.rule),
            format!("{} `{}`: {}{others}", first.action, first.about, first.why),
            &hint,
        )
    }
}

/// On what it would run, where that is not the host's own system.
fn ground(ground: &Ground) -> Vec<(String, String)> {
    match ground {
        Ground::Host => Vec::new(),
        Ground::Module { interpreter } => {
            vec![("module".to_owned(), interpreter.clone().unwrap_or_else(|| "the program itself".to_owned()))]
        }
        Ground::Image { name, runtime, .. } => {
            let image = ("image".to_owned(), name.clone().unwrap_or_else(|| "belljar's own".to_owned()));
            std::iter::once(image).chain(runtime.iter().map(|name| ("runtime".to_owned(), name.clone()))).collect()
        }
    }
}

/// More findings are not shown to a person: the gravest are.
const MOST_SHOWN: usize = 12;

/// Everything that the answer depends on.
fn question(request: &Request, policy: &Policy, facts: &Facts, grant: &Grant, reasons: Vec<Reason>) -> Question {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let command: Vec<String> = request.command.iter().map(|word| quoted(word)).collect();
    let mut shown = vec![("command".to_owned(), command.join(" "))];
    shown.push(("program".to_owned(), text(&facts.program.path)));
    shown.push(("in".to_owned(), text(&facts.start)));
    shown.extend(ground(&facts.ground));
    for place in &facts.workspaces {
        shown.push(("workspace".to_owned(), text(&place.path)));
    }
    shown.push(("workspace mode".to_owned(), facts.workspace_mode.name().to_owned()));
    for place in &facts.asked {
        let name = if place.access == Access::Read { "read" } else { "write" };
        shown.push((name.to_owned(), text(&place.path)));
    }
    for (name, value) in &request.environment {
        let said = match value {
            Some(value) => format!("{}={}", name.to_string_lossy(), quoted(value)),
            None => format!("{} (yours)", name.to_string_lossy()),
        };
        shown.push(("variable".to_owned(), said));
    }
    for wall in &request.accept_gaps {
        shown.push(("without the wall".to_owned(), wall.name().to_owned()));
    }
    shown.extend(network::shown(request, &grant.powers().network));
    shown.extend(facts.code.iter().map(|digest| ("code".to_owned(), digest.clone())));
    let reasons = reasons.into_iter().filter(|reason| reason.ruling == Ruling::Ask).collect();
    let findings = facts.findings.iter().take(MOST_SHOWN).map(Finding::line).collect();
    Question::new(facts.principal.clone(), shown, reasons, findings, policy.revision.clone())
}

fn grant(request: &Request, policy: &Policy, facts: &Facts, gift: &Gift) -> Result<Grant, Refusal> {
    let named = facts.workspaces.iter().filter(|_| facts.workspaces_named);
    for place in facts.asked.iter().chain(&gift.places).chain(named) {
        check_place(place, facts)?;
    }
    for place in facts.asked.iter().chain(&gift.places).chain(&facts.workspaces) {
        check_state(place, facts)?;
    }
    for place in &facts.workspaces {
        check_workspace(place, policy, facts)?;
    }
    let places = places(facts, gift);
    check_directory(facts, &places)?;
    let hidden = hidden(facts, &places);
    let network = network::granted(request, policy, facts)?;
    let powers = Powers {
        command: Command {
            program: facts.program.path.clone(),
            arguments: request.command.clone(),
            directory: facts.start.clone(),
            terminal: request.terminal,
        },
        environment: environment(request, policy, facts, gift, &places, &network),
        files: Files {
            ground: match facts.ground.clone() {
                Ground::Image { name, runtime, pull: missing } => {
                    let pull = match policy.pulls() {
                        Ruling::Allow => true,
                        // What nobody was asked about is not pulled, should it be gone by then.
                        Ruling::Ask => missing,
                        Ruling::Deny => false,
                    };
                    Ground::Image { name, runtime, pull }
                }
                other => other,
            },
            places,
            links: facts.links.clone(),
            hidden,
            home: facts.home.clone(),
            user_name: facts.user_name.clone(),
        },
        network,
        limits: limits(&request.limits, &policy.limits(), facts),
    };
    let missing = gift.missing.iter().chain(&request.accept_gaps).copied().collect();
    let minimum = policy.minimum().max(policy.isolation_for(&facts.findings));
    let accepted = Accepted { minimum, partly: PARTLY.to_vec(), missing };
    Ok(Grant::mint(powers, accepted))
}

/// Limits that many hosts can only measure, and a second lock that older kernels have only part of.
const PARTLY: [Wall; 4] = [Wall::Memory, Wall::Disk, Wall::CpuTime, Wall::Landlock];

/// Whoever asks chooses where they are, so a policy can say where that may be.
fn check_workspace(place: &Place, policy: &Policy, facts: &Facts) -> Result<(), Refusal> {
    let path = place.path.to_string_lossy();
    for (patterns, at) in policy.workspaces() {
        if !patterns.iter().any(|pattern| pattern.matches(&path, &[], Care::Exact)) {
            let listed: Vec<&str> = patterns.iter().map(|pattern| pattern.written.as_str()).collect();
            return Err(Refusal::new(
                &format!("files.workspaces ({at})"),
                format!("`{path}` is not where work may be done: {}", listed.join(", ")),
                &format!("go there, or add it: [files] workspaces = [\"{}\"]", facts.start.display()),
            ));
        }
    }
    Ok(())
}

fn check_place(place: &Place, facts: &Facts) -> Result<(), Refusal> {
    let path = place.path.display();
    let refuse = |rule: &str, message: String, hint: &str| Err(Refusal::new(rule, message, hint));
    if place.path == Path::new("/") {
        return refuse(
            "files.root",
            format!("the whole root can't be {}", words(place.access)),
            "name the folders that the command needs",
        );
    }
    if let Some(store) = credentials::around(&place.path, &facts.homes, &facts.linked_stores) {
        return refuse(
            "files.credentials",
            format!("`{path}` is in the credential store `{}`, which is never visible inside", store.display()),
            "keep secrets outside the sandbox; give the command what it needs in another way",
        );
    }
    if PRIVATE.iter().any(|private| is_within(&place.path, private)) {
        return refuse(
            "files.private",
            format!("`{path}` of the host is never shown; a sandbox has its own"),
            "leave it out",
        );
    }
    if place.access != Access::Read {
        let system = NEVER_WRITABLE.iter().chain(PRIVATE).map(Path::new);
        let mut system = system.chain(std::iter::once(Path::new("/opt")));
        if let Some(root) = system.find(|root| is_within(&place.path, root) || is_within(root, &place.path)) {
            let opt_project = root == Path::new("/opt") && place.path != root;
            if !opt_project {
                return refuse(
                    "files.system",
                    format!(
                        "`{path}` can't be writable: it holds, or is part of, the system folder `{}`",
                        root.display()
                    ),
                    "write to a folder of your own",
                );
            }
        }
    }
    if let Some(store) = credentials::below(&place.path, &facts.homes, &facts.linked_stores) {
        return refuse(
            "files.credentials",
            format!(
                "`{path}` holds the place of the credential store `{}`, which is never visible inside",
                store.display()
            ),
            "name the folders in it that the command needs",
        );
    }
    Ok(())
}

/// Whoever reads it sees what all sandboxes did; whoever writes to it decides what is taken onto real files.
fn check_state(place: &Place, facts: &Facts) -> Result<(), Refusal> {
    let makes_rules = |folder: &&PathBuf| is_within(&place.path, folder) || is_within(folder, &place.path);
    if place.access != Access::Read
        && let Some(folder) = facts.policies.iter().find(makes_rules)
    {
        return Err(Refusal::new(
            "files.policies",
            format!(
                "`{}` holds, or is part of, the folder `{}` where your policy is: whoever writes there makes the rules",
                place.path.display(),
                folder.display()
            ),
            "name a smaller folder",
        ));
    }
    let meets = |state: &&PathBuf| is_within(&place.path, state) || is_within(state, &place.path);
    let Some(state) = facts.state.iter().find(meets) else { return Ok(()) };
    Err(Refusal::new(
        "files.state",
        format!(
            "`{}` holds, or is part of, the folder `{}` where belljar keeps its sandboxes",
            place.path.display(),
            state.display()
        ),
        "name a smaller folder, or keep the state elsewhere with XDG_STATE_HOME",
    ))
}

fn words(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Layered | Access::Write => "written",
    }
}

/// All places, outermost first, one for each path: the one that was asked for, or else the one with more rights.
fn places(facts: &Facts, gift: &Gift) -> Vec<Place> {
    let is_writable = |file: &&Place| {
        let mut around = facts.asked.iter().chain(&gift.places).chain(&facts.workspaces);
        around.any(|place| place.access == Access::Write && is_within(&file.path, &place.path))
    };
    // A variable leads to them, and it is the asker's: never into a credential store, or where our state is.
    let toolchains = facts.toolchains.iter().filter(|place| {
        credentials::around(&place.path, &facts.homes, &facts.linked_stores).is_none()
            && check_state(place, facts).is_ok()
    });
    let mut places: Vec<Place> = facts.policy_files.iter().filter(is_writable).cloned().collect();
    places.extend(
        facts.asked.iter().filter(|place| !facts.policy_files.iter().any(|file| is_same(file, place))).cloned(),
    );
    let rest = gift.places.iter().chain(&facts.workspaces).chain(toolchains).chain(&facts.system);
    for place in rest {
        if !places.iter().any(|known| is_same(known, place)) {
            places.push(place.clone());
        }
    }
    places.sort_by(|left, right| left.path.cmp(&right.path));
    // A place inside another with the same rights adds nothing.
    let mut kept: Vec<Place> = Vec::new();
    for place in places {
        let around = kept.iter().rev().find(|outer| outer.folder && is_within(&place.path, &outer.path));
        if around.is_none_or(|outer| outer.access != place.access) {
            kept.push(place);
        }
    }
    kept
}

/// By letter: all of them are whole, and to take paths apart takes a hundred times as long.
fn is_same(one: &Place, other: &Place) -> bool {
    one.path.as_os_str() == other.path.as_os_str()
}

fn check_directory(facts: &Facts, places: &[Place]) -> Result<(), Refusal> {
    let start = &facts.start;
    let private = [Path::new("/tmp"), facts.home.as_path()];
    let visible =
        places.iter().any(|place| place.folder && (is_within(start, &place.path) || is_within(&place.path, start)))
            || private.iter().any(|private| start == private || is_within(private, start))
            || start == Path::new("/");
    if visible {
        return Ok(());
    }
    Err(Refusal::new(
        "files.directory",
        format!("the working directory `{}` is outside the grant", start.display()),
        &format!("start from it, or grant it with `--read {}`", start.display()),
    ))
}

/// What is hidden by wish, and loose secrets in places that are not the workspace.
fn hidden(facts: &Facts, places: &[Place]) -> Vec<(PathBuf, bool)> {
    let mut hidden: Vec<(PathBuf, bool)> = facts.hide.iter().chain(&facts.loose_secrets).cloned().collect();
    hidden.retain(|(path, _)| places.iter().any(|place| is_within(path, &place.path)));
    hidden.sort();
    hidden.dedup();
    hidden
}

fn environment(
    request: &Request,
    policy: &Policy,
    facts: &Facts,
    gift: &Gift,
    places: &[Place],
    network: &Network,
) -> Vec<(OsString, OsString)> {
    let visible = |path: &Path| places.iter().any(|place| is_within(path, &place.path));
    let mut result: Vec<(OsString, OsString)> = Vec::new();
    for (name, value) in &facts.environment {
        let plain = ENVIRONMENT.iter().any(|known| name == known)
            || name.as_encoded_bytes().starts_with(b"LC_")
            || gift.variables.contains(name);
        let toolchain = facts.ground == Ground::Host
            && TOOLCHAIN_VARIABLES.iter().any(|known| name == known)
            && (!Path::new(value).is_absolute() || visible(Path::new(value)));
        if plain || toolchain {
            result.push((name.clone(), value.clone()));
        }
    }
    let mut set = |name: &str, value: &OsStr| {
        result.retain(|(known, _)| known != name);
        result.push((name.into(), value.into()));
    };
    // In an image its own is known, and a module has no use for one.
    if facts.ground == Ground::Host {
        set("PATH", &search_path(facts, places));
    }
    set("HOME", facts.home.as_os_str());
    set("USER", OsStr::new(&facts.user_name));
    set("LOGNAME", OsStr::new(&facts.user_name));
    set("PWD", facts.start.as_os_str());
    for (name, value) in policy.set() {
        set(name, OsStr::new(value));
    }
    set("BELLJAR", OsStr::new("1"));
    let (trust, stand_ins) = network::variables(network, facts);
    for (name, value) in &trust {
        let known = result.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str());
        let value = network::joined(name, known, value);
        result.retain(|(known, _)| known != name);
        result.push((name.into(), value));
    }
    for (name, value) in &request.environment {
        let inherited = || facts.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        result.retain(|(known, _)| known != name);
        if let Some(value) = value.clone().or_else(inherited) {
            result.push((name.clone(), value));
        }
    }
    for (name, value) in stand_ins {
        result.retain(|(known, _)| *known != name);
        result.push((name, value));
    }
    result.sort();
    result
}

/// The caller's search path without what can't be seen, and never without the system's.
fn search_path(facts: &Facts, places: &[Place]) -> OsString {
    let links = &facts.links;
    let visible = |path: &Path| {
        places.iter().any(|place| is_within(path, &place.path)) || links.iter().any(|(link, _)| is_within(path, link))
    };
    let path =
        facts.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone()).unwrap_or_default();
    let mut entries: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|entry| entry.is_absolute() && visible(entry)).collect();
    for standard in ["/usr/local/bin", "/usr/bin", "/bin"] {
        if !entries.iter().any(|entry| entry == Path::new(standard)) {
            entries.push(standard.into());
        }
    }
    std::env::join_paths(entries).unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into())
}

fn limits(asked: &Asked, ceilings: &Asked, facts: &Facts) -> Limits {
    // A policy's limit is a ceiling; a request may only ask for less.
    let Asked { wall_time, millicpus, cpu_time, memory, processes, disk, open_files, output } = lowest(asked, ceilings);
    let memory = memory.unwrap_or(facts.memory / 4 * 3);
    let disk = disk.unwrap_or(DEFAULT_DISK.min(memory));
    Limits {
        wall_time,
        millicpus,
        cpu_time,
        memory,
        processes: processes.unwrap_or(DEFAULT_PROCESSES),
        disk,
        inodes: (disk / BYTES_PER_INODE).max(FEWEST_INODES),
        open_files: open_files.unwrap_or(DEFAULT_OPEN_FILES),
        largest_file: disk.saturating_add(facts.inherited_size),
        output,
    }
}

const DEFAULT_DISK: u64 = 8 << 30;
const DEFAULT_PROCESSES: u64 = 4096;
const DEFAULT_OPEN_FILES: u64 = 16_384;
const BYTES_PER_INODE: u64 = 8192;
const FEWEST_INODES: u64 = 1024;
