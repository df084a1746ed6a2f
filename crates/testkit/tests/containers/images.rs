//! Images without a registry.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use belljar_testkit::contestant::Who;
use belljar_testkit::project::{Project, Said};

use crate::{Stage, Story, that};

pub const ALL: &[(&str, Story)] = &[
    ("one of one's own is made from busybox", from_host),
    ("a folder and an archive become images", imported),
    ("an OCI layout becomes an image", layout),
    ("a small Debian is made by debootstrap", debootstrap),
    ("hostile archives stay in the engine", hostile),
    ("what is not there is not pulled", missing),
    ("a person is asked before something is pulled, if the policy says so", asked),
];

fn shown(stage: &Stage<'_>, words: &[&str]) -> Result<serde_json::Value, String> {
    let said = stage.belljar(words)?;
    that(said.code == Some(0), || format!("{words:?}: {said:?}"))?;
    serde_json::from_slice(&said.out).map_err(|error| format!("{error}: {said:?}"))
}

fn from_host(stage: &Stage<'_>) -> Result<(), String> {
    let made = shown(stage, &["image", "from-host", "--name", "small", "--json"])?;
    that(made["id"].as_str().is_some_and(|id| id.starts_with("sha256:")), || made.to_string())?;
    let said = stage.said(&["--image", "small"], "echo inside; busybox | head -1")?;
    that(said.starts_with("inside\nBusyBox"), || said.clone())?;
    let list = shown(stage, &["image", "ls", "--json"])?;
    that(list.to_string().contains("small:latest"), || list.to_string())?;
    shown(stage, &["image", "rm", "small", "--json"])?;
    let list = shown(stage, &["image", "ls", "--json"])?;
    that(!list.to_string().contains("small:latest"), || list.to_string())
}

/// There is no registry here: what is looked at is who was asked, and whether the engine then tried.
fn asked(stage: &Stage<'_>) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let project = Project::new(stage.who).and_then(Project::at_home).map_err(text)?;
    let folder = project.state.with_file_name(".config").join("belljar");
    fs::create_dir_all(&folder).map_err(text)?;
    let policy = folder.join("policy.toml");
    let says = |pull: &str| {
        fs::write(&policy, format!("version = 1\n[isolation]\npull = \"{pull}\"\n[approvals]\ntimeout = \"60s\"\n"))
            .map_err(text)
    };
    says("ask")?;
    for path in [folder.parent().unwrap_or(&folder), &folder, &policy] {
        project.give(path).map_err(text)?;
    }
    let run = |image: &str| {
        let words = ["run", "--backend", "container", "--workspace-mode", "readonly", "--image", image, "--", "true"];
        let mut command = project.command(words);
        command.env("DOCKER_HOST", stage.engine.host());
        command
    };
    // One that is there is no question.
    shown(stage, &["image", "from-host", "--name", "there", "--json"])?;
    let said = run("there").output().map(Said::of).map_err(text)?;
    that(said.code == Some(0), || format!("{said:?}"))?;
    for (answer, code, error) in [("--deny", 122, "somebody"), ("--once", 125, "pull")] {
        let waits = run("not-there:1").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(text)?;
        let mut parked = serde_json::Value::Null;
        let until = Instant::now() + Duration::from_secs(60);
        while parked.is_null() && Instant::now() < until {
            parked = project.json(["approve", "list", "--json"])?["parked"][0].clone();
            std::thread::sleep(Duration::from_millis(50));
        }
        let (id, digest) = (parked["id"].as_str().unwrap_or_default(), parked["digest"].as_str().unwrap_or_default());
        that(parked.to_string().contains("isolation.pull") && parked.to_string().contains("not-there:1"), || {
            parked.to_string()
        })?;
        project.done(["approve", id, answer, "--yes", "--digest", &digest[..12]])?;
        let said = waits.wait_with_output().map(Said::of).map_err(text)?;
        that(said.code == Some(code), || format!("{answer}: {said:?}"))?;
        let refused = said.error.contains("does not let images be pulled");
        that(!refused && (code == 122 || said.error.contains(error)), || format!("{answer}: {said:?}"))?;
    }
    says("deny")?;
    let said = run("not-there:1").output().map(Said::of).map_err(text)?;
    that(said.code == Some(125) && said.error.contains("does not let images be pulled"), || format!("{said:?}"))?;
    shown(stage, &["image", "rm", "there", "--json"]).map(drop)
}

/// From a mirror of one package's worth: a folder that looks like one is no Debian, so the real one is asked, where it can be.
fn debootstrap(stage: &Stage<'_>) -> Result<(), String> {
    let make = ["image", "from-host", "--debootstrap", "bookworm", "--name", "tiny", "--json"];
    if stage.who != Who::Root {
        let said = stage.belljar(&make)?;
        return that(said.code == Some(125) && said.error.contains("debootstrap"), || format!("{said:?}"));
    }
    for wrong in ["--help", "../x", "a b", ""] {
        let flag = format!("--debootstrap={wrong}");
        let said = stage.belljar(&["image", "from-host", &flag])?;
        that(said.code == Some(125) && said.error.contains("is no name of a suite"), || format!("{said:?}"))?;
    }
    let there = std::path::Path::new("/usr/sbin/debootstrap").exists();
    let said = {
        let mut command = stage.command(&make);
        command.env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").envs(proxies());
        command.output().map(Said::of).map_err(|error| error.to_string())?
    };
    if !there || said.error.contains("`debootstrap` failed") {
        println!("skipped: a small Debian by debootstrap: {}", said.error.trim());
        return that(said.code == Some(125), || format!("{said:?}"));
    }
    that(said.code == Some(0), || format!("{said:?}"))?;
    let inside = stage.said(&["--image", "tiny"], "cat /etc/debian_version; dpkg --version | head -1; id -u")?;
    that(inside.starts_with("12.") && inside.contains("dpkg"), || inside.clone())?;
    shown(stage, &["image", "rm", "tiny", "--json"]).map(drop)
}

/// How this machine gets to its mirror.
fn proxies() -> Vec<(String, String)> {
    std::env::vars().filter(|(name, _)| name.to_ascii_lowercase().ends_with("_proxy")).collect()
}

/// A root with a shell and a mark.
fn root(stage: &Stage<'_>) -> Result<std::path::PathBuf, String> {
    let root = stage.project.work.join("root");
    let make = || -> std::io::Result<()> {
        fs::create_dir_all(root.join("bin"))?;
        fs::copy("/bin/busybox", root.join("bin/busybox"))?;
        std::os::unix::fs::symlink("busybox", root.join("bin/sh"))?;
        std::os::unix::fs::symlink("busybox", root.join("bin/cat"))?;
        fs::write(root.join("mark"), "of its own\n")
    };
    make().map_err(|error| error.to_string())?;
    Ok(root)
}

fn tar(folder: &std::path::Path, to: &std::path::Path, flags: &[&str]) -> Result<(), String> {
    let status = Command::new("tar").args(flags).arg("-cf").arg(to).arg("-C").arg(folder).arg(".").status();
    that(status.is_ok_and(|status| status.success()), || "tar failed".to_owned())
}

fn imported(stage: &Stage<'_>) -> Result<(), String> {
    let root = root(stage)?;
    let archive = stage.project.work.join("root.tar");
    tar(&root, &archive, &[])?;
    let packed = stage.project.work.join("root.tar.gz");
    tar(&root, &packed, &["-z"])?;
    for (from, name) in [(&root, "folder"), (&archive, "archive"), (&packed, "packed")] {
        let path = from.to_string_lossy().into_owned();
        shown(stage, &["image", "import", &path, "--name", name, "--json"])?;
        let said = stage.said(&["--image", name], "cat /mark")?;
        that(said == "of its own\n", || format!("{name}: {said}"))?;
    }
    Ok(())
}

fn layout(stage: &Stage<'_>) -> Result<(), String> {
    let root = root(stage)?;
    let folder = stage.project.work.join("layout");
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).map_err(|error| error.to_string())?;
    let layer = stage.project.work.join("layer.tar");
    tar(&root, &layer, &["--owner=0", "--group=0", "--numeric-owner"])?;
    let digest = |path: &std::path::Path| -> Result<String, String> {
        let said = Command::new("sha256sum").arg(path).output().map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&said.stdout).split_whitespace().next().unwrap_or_default().to_owned())
    };
    let put = |text: String| -> Result<(String, usize), String> {
        let path = stage.project.work.join("part");
        fs::write(&path, &text).map_err(|error| error.to_string())?;
        let name = digest(&path)?;
        fs::rename(&path, blobs.join(&name)).map_err(|error| error.to_string())?;
        Ok((name, text.len()))
    };
    let of_layer = digest(&layer)?;
    let size = fs::metadata(&layer).map_err(|error| error.to_string())?.len();
    fs::rename(&layer, blobs.join(&of_layer)).map_err(|error| error.to_string())?;
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let (config, config_size) = put(format!(
        r#"{{"architecture":"{machine}","os":"linux","config":{{}},"rootfs":{{"type":"layers","diff_ids":["sha256:{of_layer}"]}}}}"#
    ))?;
    let (manifest, manifest_size) = put(format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:{config}","size":{config_size}}},"layers":[{{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:{of_layer}","size":{size}}}]}}"#
    ))?;
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:{manifest}","size":{manifest_size}}}]}}"#
    );
    fs::write(folder.join("index.json"), index).map_err(|error| error.to_string())?;
    fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).map_err(|error| error.to_string())?;
    let archive = stage.project.work.join("layout.tar");
    tar(&folder, &archive, &[])?;
    for (from, name) in [(&folder, "layout"), (&archive, "layout-archive")] {
        let path = from.to_string_lossy().into_owned();
        shown(stage, &["image", "import", &path, "--name", name, "--json"])?;
        let said = stage.said(&["--image", name], "cat /mark")?;
        that(said == "of its own\n", || format!("{name}: {said}"))?;
    }
    Ok(())
}

fn hostile(stage: &Stage<'_>) -> Result<(), String> {
    let marker = stage.project.state.join("outside");
    let folder = stage.project.work.join("evil");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    fs::write(folder.join("x"), "x").map_err(|error| error.to_string())?;
    let archive = stage.project.work.join("evil.tar");
    // A name that leads out of the archive.
    let climbing = format!("s|^./x|../../../../../../../..{}|", marker.display());
    let status = Command::new("tar")
        .arg("-cPf")
        .arg(&archive)
        .arg("-C")
        .arg(&folder)
        .args(["--transform", &climbing, "./x"])
        .status();
    that(status.is_ok_and(|status| status.success()), || "tar failed".to_owned())?;
    let path = archive.to_string_lossy().into_owned();
    stage.belljar(&["image", "import", &path, "--name", "evil"])?;
    that(!marker.exists(), || "it was unpacked on the host".to_owned())?;
    // No archive at all.
    let rubbish = stage.project.work.join("rubbish.tar");
    fs::write(&rubbish, [0xffu8; 4096]).map_err(|error| error.to_string())?;
    let said = stage.belljar(&["image", "import", &rubbish.to_string_lossy(), "--name", "rubbish"])?;
    that(said.code == Some(125), || format!("{said:?}"))
}

fn missing(stage: &Stage<'_>) -> Result<(), String> {
    let said = stage.run(&["--image", "registry.invalid/no/such:1"], "true")?;
    that(
        said.code == Some(125) && said.error.contains("does not let images be pulled") && said.error.contains("pull"),
        || format!("{said:?}"),
    )
}
