//! Images without a registry.

use std::fs;
use std::process::Command;

use crate::{Stage, Story, that};

pub const ALL: &[(&str, Story)] = &[
    ("one of one's own is made from busybox", from_host),
    ("a folder and an archive become images", imported),
    ("an OCI layout becomes an image", layout),
    ("hostile archives stay in the engine", hostile),
    ("what is not there is not pulled", missing),
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
