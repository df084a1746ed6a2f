//! Other ways to an engine than `DOCKER_HOST`, and other runtimes than its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use belljar_testkit::project::Said;

use crate::{Stage, Story, that};

pub const ALL: &[(&str, Story)] = &[
    ("an engine is found by CONTAINER_HOST", container_host),
    ("an engine is found by the context that was chosen", context),
    ("a context that is not there is refused by name", no_context),
    ("an engine in the user's own folder for sockets is found", runtime_folder),
    ("a kernel of its own is used where the engine has it", runsc),
    ("a runtime that the engine does not have is refused by name", no_runtime),
    ("what was used is in the result by name and digest", digest),
];

/// A run that is told nothing of the engine but by these variables.
fn told(stage: &Stage<'_>, variables: &[(&str, &str)]) -> Result<Said, String> {
    let words = ["run", "-q", "--backend", "container", "--workspace-mode", "readonly", "--", "echo", "found"];
    let mut command = stage.project.command(words);
    command.envs(variables.iter().copied());
    command.output().map(Said::of).map_err(|error| error.to_string())
}

fn found(said: Said) -> Result<(), String> {
    that(said.code == Some(0) && said.out == b"found\n", || format!("{said:?}"))
}

fn made(stage: &Stage<'_>, path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| error.to_string())?;
    stage.project.give(path).map_err(|error| error.to_string())
}

fn container_host(stage: &Stage<'_>) -> Result<(), String> {
    found(told(stage, &[("CONTAINER_HOST", &stage.engine.host())])?)?;
    let far = told(stage, &[("CONTAINER_HOST", "ssh://somebody@elsewhere")])?;
    that(far.code == Some(125) && far.error.contains("CONTAINER_HOST"), || format!("{far:?}"))
}

fn context(stage: &Stage<'_>) -> Result<(), String> {
    let folder = stage.project.work.with_file_name("docker");
    let meta = folder.join("contexts/meta/0123");
    made(stage, &meta)?;
    let host = stage.engine.host();
    let text = format!(r#"{{"Name":"ours","Metadata":{{}},"Endpoints":{{"docker":{{"Host":"{host}"}}}}}}"#);
    fs::write(meta.join("meta.json"), text).map_err(|error| error.to_string())?;
    let folder = folder.to_string_lossy().into_owned();
    found(told(stage, &[("DOCKER_CONFIG", &folder), ("DOCKER_CONTEXT", "ours")])?)?;
    fs::write(format!("{folder}/config.json"), r#"{"currentContext":"ours"}"#).map_err(|error| error.to_string())?;
    found(told(stage, &[("DOCKER_CONFIG", &folder)])?)
}

fn no_context(stage: &Stage<'_>) -> Result<(), String> {
    let said = told(stage, &[("DOCKER_CONTEXT", "nowhere")])?;
    that(said.code == Some(125) && said.error.contains("no Docker context `nowhere`"), || format!("{said:?}"))
}

fn runtime_folder(stage: &Stage<'_>) -> Result<(), String> {
    let folder = stage.project.work.with_file_name("runtime");
    made(stage, &folder)?;
    symlink(stage.engine.socket(), folder.join("docker.sock")).map_err(|error| error.to_string())?;
    found(told(stage, &[("XDG_RUNTIME_DIR", &folder.to_string_lossy())])?)
}

fn runsc(stage: &Stage<'_>) -> Result<(), String> {
    if !Path::new("/usr/bin/runsc").exists() {
        println!("skipped: a kernel of its own by the engine: there is no /usr/bin/runsc");
        return Ok(());
    }
    let theirs = fs::read_to_string("/proc/version").map_err(|error| error.to_string())?;
    let ours = stage.said(&["--runtime", "runsc"], "cat /proc/version")?;
    that(ours.starts_with("Linux version") && ours != theirs, || ours.clone())?;
    stage.said(&["--runtime", "runsc"], "echo behind > made-behind-it")?;
    let seen = stage.said(&[], "cat made-behind-it 2>/dev/null; echo end")?;
    that(seen == "end\n", || format!("a change is in its own layer: {seen}"))
}

fn no_runtime(stage: &Stage<'_>) -> Result<(), String> {
    let said = stage.run(&["--runtime", "kata"], "true")?;
    that(said.code == Some(125) && said.error.contains("no runtime `kata`"), || format!("{said:?}"))
}

fn digest(stage: &Stage<'_>) -> Result<(), String> {
    let file = stage.project.work.join("result.json").to_string_lossy().into_owned();
    stage.said(&["--result-file", &file], "true")?;
    let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let result: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let (name, digest) = (result["image"]["name"].as_str(), result["image"]["digest"].as_str());
    that(
        name.is_some_and(|name| name.starts_with("belljar/busybox:"))
            && digest.is_some_and(|digest| digest.starts_with("sha256:") && digest.len() == 71),
        || text.clone(),
    )?;
    let log = stage.belljar(&["log", "--json"])?;
    let log = String::from_utf8_lossy(&log.out).into_owned();
    let digest = digest.unwrap_or_default();
    let entry = |kind: &str| log.lines().any(|line| line.contains(kind) && line.contains(digest));
    that(entry("sandbox.opening"), || format!("it is not in the record: {log}"))
}
