//! What each tool does: jobs for carriers, and their answers as the tool's schema says.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Cell, Language, Makes};
use rmcp::model::Resource;
use serde::Serialize;
use serde_json::Value;
use service::job::Asked;
use service::{OfTheHost, Task};

use crate::arguments as take;
use crate::calls::Ended;
use crate::house::{LARGEST_ARTIFACT, Worker, new_id};
use crate::languages;
use crate::output as give;
use crate::resources;
use crate::said::{Failure, Good};

/// Of a patch in an answer, in bytes.
const LONGEST_PATCH: usize = 256 << 10;
/// Entries of the record in an answer.
const MOST_ENTRIES: usize = 100;

pub async fn run_command(worker: Worker, mut arguments: take::RunCommand) -> Ended {
    let sandbox = worker.sandbox_or_none(arguments.sandbox.take()).await?;
    let (wish, files) = (arguments.wish()?, arguments.files());
    let stdin = arguments.stdin.map(String::into_bytes);
    let task = match &sandbox {
        None => Task::Run { wish, folder: new_id()?, files },
        Some(_) if !files.is_empty() => {
            return Err(Failure::wrong("`files` are for a new sandbox, and this one is there already")
                .fix("use `write_file`, or leave `files` out"));
        }
        Some(id) => Task::RunIn { id: id.clone(), wish },
    };
    let result = worker.run(task, stdin).await?;
    ran(&result, sandbox)
}

pub async fn run_code(worker: Worker, arguments: take::RunCode) -> Ended {
    let take::RunCode { language, code, context, sandbox, directory, stdin, timeout, network, artifacts } = arguments;
    if let Some(context) = context {
        let only = directory.is_none() && stdin.is_none() && artifacts.is_empty() && network.is_empty();
        if !only {
            return Err(Failure::wrong(
                "with `context`, there are neither `directory`, `stdin`, `artifacts` nor `network`",
            )
            .fix("a context has those of its sandbox; change folders in the code itself"));
        }
        return run_cell(worker, language, code, context, sandbox, timeout).await;
    }
    let command = languages::command(language, &code)?;
    let (environment, files) = Default::default();
    let arguments =
        take::RunCommand { command, sandbox, directory, stdin, timeout, environment, network, artifacts, files };
    run_command(worker, arguments).await
}

/// Code where code before it left its variables.
async fn run_cell(
    worker: Worker,
    language: Language,
    code: String,
    context: String,
    sandbox: Option<String>,
    timeout: Option<f64>,
) -> Ended {
    let Some(keeps) = language.keeps() else {
        return Err(Failure::wrong(format!("{} has no contexts", language.name())).fix("leave `context` out"));
    };
    languages::is_short(&code)?;
    let program = language.program(&OfTheHost).map_err(languages::missing)?.to_owned();
    let id = worker.sandbox(sandbox).await?;
    let wish = take::timed(timeout)?;
    let cell = Cell { language: keeps, program, code, context: Some(context), makes: Makes::IfMissing };
    let result = worker.run(Task::Cell { id: id.clone(), wish, cell }, None).await?;
    let mut good = ran(&result, Some(id))?;
    let parts = |result: &Value| result["parts"].as_array().cloned().unwrap_or_default();
    let mut told = result["cell"].clone();
    for result in told["results"].as_array_mut().into_iter().flatten() {
        for part in parts(result) {
            let kind = match part["kind"].as_str() {
                Some("png") => "image/png",
                Some("jpeg") => "image/jpeg",
                _ => continue,
            };
            good.images.push((part["data"].as_str().unwrap_or_default().to_owned(), kind));
        }
        // They come as content, and need not come twice.
        let text: Vec<Value> =
            parts(result).into_iter().filter(|part| part["kind"] != "png" && part["kind"] != "jpeg").collect();
        if let Some(said) = text.iter().find(|part| part["kind"] == "text").and_then(|part| part["data"].as_str()) {
            good.text += if good.text.is_empty() || good.text.ends_with('\n') { "" } else { "\n" };
            good.text += said;
        }
        result["parts"] = text.into();
    }
    for said in [&told["error"]["traceback"], &told["lost"]] {
        if let Some(said) = said.as_str() {
            good.text += if good.text.is_empty() || good.text.ends_with('\n') { "" } else { "\n" };
            good.text += said;
        }
    }
    good.value["cell"] = told;
    Ok(good)
}

fn ran(result: &Value, sandbox: Option<String>) -> Ended {
    let list = |name: &str| result[name].as_array().cloned().unwrap_or_default();
    let some = |value: &Value| Some(value.clone()).filter(|value| !value.is_null());
    let (stdout, stderr) = (stream(&result["stdout"]), stream(&result["stderr"]));
    let left_out = [&result["stdout"], &result["stderr"]].iter().filter_map(|said| said["left_out"].as_u64()).sum();
    let kept = result["changes"]["sandbox"].as_str().map(str::to_owned);
    let ran = give::Ran {
        run: result["run"].as_str().map(str::to_owned),
        sandbox: sandbox.or(kept),
        exit: result["exit"].as_i64(),
        signal: result["signal"].as_i64(),
        overrun: some(&result["overrun"]),
        cancelled: result["cancelled"] == true,
        stdout,
        stderr,
        left_out,
        changes: some(&result["changes"]),
        denials: list("denials"),
        findings: list("findings"),
        artifacts: list("artifacts"),
        network: some(&result["network"]),
        cell: None,
    };
    let mut text = ran.stdout.clone();
    for part in [&ran.stderr, &ended(&ran)] {
        if !part.is_empty() {
            text += if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            text += part;
        }
    }
    let links = ran.artifacts.iter().filter(|artifact| artifact["released"] == true).filter_map(resources::artifact);
    let links = links.chain(ran.run.as_deref().map(resources::log)).collect();
    let value = value(&ran)?;
    Ok(Good { value, text, links, images: Vec::new() })
}

/// The line that says how it ended, where that is not plain.
fn ended(ran: &give::Ran) -> String {
    let mut parts = Vec::new();
    match (ran.exit, ran.signal) {
        (Some(0), _) => {}
        (Some(code), _) => parts.push(format!("exit {code}")),
        (None, Some(signal)) => parts.push(format!("ended by signal {signal}")),
        (None, None) => {}
    }
    if let Some(limit) = ran.overrun.as_ref().and_then(Value::as_str) {
        parts.push(format!("over the limit: {limit}"));
    }
    if ran.cancelled {
        parts.push("cancelled".to_owned());
    }
    if !ran.denials.is_empty() {
        parts.push(format!("{} kinds of calls were denied; see `explain_denial`", ran.denials.len()));
    }
    if ran.left_out > 0 {
        parts.push(format!("{} bytes left out", ran.left_out));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!("[{}]", parts.join("; ")),
    }
}

/// Its beginning, and its end where the middle was too much.
fn stream(said: &Value) -> String {
    let head = said["text"].as_str().unwrap_or_default().to_owned();
    match (said["tail"]["text"].as_str(), said["left_out"].as_u64()) {
        (Some(tail), Some(left_out)) => format!("{head}\n[… {left_out} bytes …]\n{tail}"),
        _ => head,
    }
}

pub async fn diff(worker: Worker, arguments: take::Diff) -> Ended {
    let take::Diff { sandbox, other, path, patch } = arguments;
    let id = worker.sandbox(sandbox).await?;
    let paths: Vec<PathBuf> = path.into_iter().collect();
    let task = Task::Changes { id: id.clone(), other: other.clone(), paths: paths.clone() };
    let changed = worker.ask(task, "sandbox").await?;
    let changes = changed["changes"].as_array().cloned().unwrap_or_default();
    let (mut text, mut left_out) = (None, 0);
    if patch {
        let patch = worker.ask(Task::Patch { id: id.clone(), other, paths }, "sandbox").await?;
        let whole = patch["patch"].as_str().unwrap_or_default();
        let mut end = whole.len().min(LONGEST_PATCH);
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        left_out = (whole.len() - end) as u64;
        text = Some(whole[..end].to_owned());
    }
    let mut said = match changes.len() {
        0 => format!("{id} changed nothing"),
        count => format!("{id} changed {count} paths"),
    };
    for change in changes.iter().take(200) {
        said += &format!("\n{} {}", change["kind"].as_str().unwrap_or("?"), path_of(&change["path"]));
    }
    if let Some(text) = &text {
        said += &format!("\n{text}");
    }
    good(&give::Changed { sandbox: id, changes, patch: text, left_out }, said)
}

/// As `model::Shown` is written.
pub fn path_of(shown: &Value) -> String {
    shown.as_str().or_else(|| shown["shown"].as_str()).unwrap_or("?").to_owned()
}

pub async fn apply(worker: Worker, arguments: take::Apply) -> Ended {
    let take::Apply { sandbox, paths, favor, check } = arguments;
    let id = worker.sandbox(sandbox).await?;
    let task = Task::Apply { id: id.clone(), paths, favor: favor.map(Into::into), check, by_agent: true };
    let taken = worker.ask(task, "sandbox").await?;
    if let Some(why) = taken["unanswered"].as_str() {
        return Err(Failure::new("approval-missing", format!("nothing was taken: {why}"))
            .rule("apply.by-agent")
            .fix("a person answers with `belljar approve`, or takes the changes with `belljar apply`"));
    }
    let list = |name: &str| taken[name].as_array().cloned().unwrap_or_default();
    let applied = give::Applied {
        sandbox: id,
        taken: list("taken"),
        conflicts: list("conflicts"),
        held_back: list("held_back"),
        refused: list("refused"),
        asked: list("asked"),
        complete: taken["complete"] == true,
    };
    let mut said = Vec::new();
    for (what, list) in [
        ("taken", &applied.taken),
        ("conflicts", &applied.conflicts),
        ("held back", &applied.held_back),
        ("refused", &applied.refused),
        ("a person would be asked about", &applied.asked),
    ] {
        if !list.is_empty() {
            let paths: Vec<String> = list.iter().take(50).map(|deed| path_of(&deed["path"])).collect();
            said.push(format!("{what}: {} ({})", list.len(), paths.join(", ")));
        }
    }
    if said.is_empty() {
        said.push("there was nothing to take".to_owned());
    }
    good(&applied, said.join("\n"))
}

pub async fn snapshot(worker: Worker, arguments: take::Snapshot) -> Ended {
    let id = worker.sandbox(arguments.sandbox).await?;
    let made = worker.ask(Task::Snapshot { id, name: arguments.name }, "sandbox").await?;
    let snapped = snapped(&made);
    let text = format!("kept as {}", snapped.snapshot);
    good(&snapped, text)
}

pub async fn rollback(worker: Worker, arguments: take::Rollback) -> Ended {
    let id = worker.sandbox(arguments.sandbox).await?;
    let gone = worker.ask(Task::RollBack { id, snapshot: arguments.snapshot }, "sandbox or snapshot").await?;
    let snapped = snapped(&gone);
    let text = format!("back at {}", snapped.snapshot);
    good(&snapped, text)
}

fn snapped(answer: &Value) -> give::Snapped {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    give::Snapped { sandbox: text("sandbox"), snapshot: text("snapshot") }
}

pub async fn fork(worker: Worker, arguments: take::Fork) -> Ended {
    let sandbox = worker.sandbox(arguments.sandbox).await?;
    if !(1..=64).contains(&arguments.count) {
        return Err(Failure::wrong("`count` is between 1 and 64"));
    }
    let made = worker.ask(Task::Fork { id: sandbox.clone(), count: arguments.count }, "sandbox").await?;
    let ids = made.as_array().into_iter().flatten().filter_map(|fork| fork["id"].as_str().map(str::to_owned));
    let forks: Vec<String> = ids.collect();
    let text = forks.join("\n");
    good(&give::Forked { sandbox, forks }, text)
}

pub async fn list_artifacts(worker: Worker, arguments: take::ListArtifacts) -> Ended {
    if let Some(of) = &arguments.of
        && (of.len() < 8 || !of.bytes().all(|byte| byte.is_ascii_hexdigit()))
    {
        return Err(Failure::not_found("run or sandbox"));
    }
    let listed = worker.ask(Task::Artifacts { of: arguments.of }, "run or sandbox").await?;
    let artifacts = listed.as_array().cloned().unwrap_or_default();
    let lines = artifacts.iter().map(|artifact| {
        let fate = match artifact["released"] == true {
            true => String::new(),
            false => format!(" (withheld: {})", artifact["reason"].as_str().unwrap_or("?")),
        };
        format!("{} {}{fate}", artifact["id"].as_str().unwrap_or("?"), path_of(&artifact["path"]))
    });
    let text = if artifacts.is_empty() { "there are none".to_owned() } else { lines.collect::<Vec<_>>().join("\n") };
    let links = artifacts.iter().filter(|artifact| artifact["released"] == true).filter_map(resources::artifact);
    let links: Vec<Resource> = links.take(50).collect();
    Ok(Good { value: value(&give::Artifacts { artifacts })?, text, links, images: Vec::new() })
}

pub async fn get_artifact(worker: Worker, arguments: take::GetArtifact) -> Ended {
    let contents = artifact(&worker, arguments.id).await?;
    let text = match &contents.text {
        Some(text) => text.clone(),
        None => format!("{} bytes of {}, in `base64`", contents.size, contents.kind),
    };
    good(&contents, text)
}

/// For the tool and for the resource.
pub async fn artifact(worker: &Worker, id: String) -> Result<give::ArtifactContents, Failure> {
    let known = worker.ask(Task::Artifact { id: id.clone() }, "artifact").await?;
    let size = known["size"].as_u64().unwrap_or_default();
    if known["released"] != true {
        let text = |name: &str| known[name].as_str().unwrap_or_default().to_owned();
        return Err(Failure::new(
            "withheld",
            format!("`{}` was withheld: {}", path_of(&known["path"]), text("reason")),
        )
        .rule(text("rule"))
        .fix("it stays in the sandbox; a person can change the policy"));
    }
    if size > LARGEST_ARTIFACT {
        return Err(Failure::new(
            "too-large",
            format!("it has {size} bytes, and {LARGEST_ARTIFACT} are the most here"),
        )
        .fix(format!("a person gets it with `belljar artifacts get {id}`")));
    }
    let (_, bytes) = worker.contents(Task::ArtifactContents { id: id.clone() }, None, "artifact").await?;
    let (text, base64) = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => (Some(text), None),
        Ok(text) => (None, Some(STANDARD.encode(text))),
        Err(error) => (None, Some(STANDARD.encode(error.into_bytes()))),
    };
    let kind = known["kind"].as_str().unwrap_or("application/octet-stream").to_owned();
    Ok(give::ArtifactContents { id, path: path_of(&known["path"]), kind, size, text, base64 })
}

pub async fn explain_denial(worker: Worker, arguments: take::ExplainDenial) -> Ended {
    match (arguments.run, arguments.command) {
        (Some(run), None) => {
            if run.len() < 16 || !run.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(Failure::not_found("run"));
            }
            let query = Asked { run: Some(run), denied: true, ..Asked::default() };
            let entries = worker.ask(Task::Entries { query, most: MOST_ENTRIES }, "run").await?;
            let denials = entries.as_array().cloned().unwrap_or_default();
            let text = match denials.is_empty() {
                true => "nothing was denied to it that is on record".to_owned(),
                false => denials.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
            };
            good(&give::Explained { ruling: None, reasons: Vec::new(), denials }, text)
        }
        (None, Some(command)) if !command.is_empty() => {
            let id = worker.sandbox_or_none(arguments.sandbox).await?;
            let checked = worker.ask(Task::Check { command, agent: None, id }, "sandbox").await?;
            let reasons = checked["reasons"].as_array().cloned().unwrap_or_default();
            let ruling = checked["ruling"].as_str().map(str::to_owned);
            let mut text = ruling.clone().unwrap_or_else(|| "?".to_owned());
            for reason in &reasons {
                let said = |name: &str| reason[name].as_str().unwrap_or_default();
                text += &format!("\n{}: {} (rule: {})", said("about"), said("why"), said("rule"));
                if !said("grant").is_empty() && said("ruling") != "allow" {
                    text += &format!("; a person could: {}", said("grant"));
                }
            }
            good(&give::Explained { ruling, reasons, denials: Vec::new() }, text)
        }
        _ => Err(Failure::wrong("say either `run` or `command`")),
    }
}

pub async fn request_permission(worker: Worker, arguments: take::RequestPermission) -> Ended {
    let take::RequestPermission { command, sandbox, directory, network } = arguments;
    // A run without one has a new workspace each time, so a yes to one would be to no other.
    let id = Some(worker.sandbox(sandbox).await?);
    let mut asked = take::RunCommand {
        command,
        sandbox: None,
        directory,
        stdin: None,
        timeout: None,
        environment: Default::default(),
        network,
        artifacts: Vec::new(),
        files: Default::default(),
    };
    let permitted = worker.ask(Task::Permit { id, wish: asked.wish()? }, "sandbox").await?;
    let permitted = permitted.as_str().unwrap_or_default().to_owned();
    let next = match permitted.as_str() {
        "already" => "run it: nobody need be asked",
        _ => {
            "run exactly this with `run_command`: the yes holds for it once within ten minutes, or longer if the person said so"
        }
    };
    let text = format!("{permitted}: {next}");
    good(&give::Permission { permitted, next: next.to_owned() }, text)
}

pub fn good(given: &impl Serialize, text: impl Into<String>) -> Ended {
    Ok(Good::new(value(given)?, text))
}

fn value(given: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(given).map_err(|error| Failure::new("trouble", format!("cannot say it as JSON: {error}")))
}
