//! `docker commit` of a container that has the tree in its image.

use std::process::Command;

use super::{Way, command, first};
use crate::bench::workspace::trees::Tree;
use crate::place;

pub const NAME: &str = "docker commit, rmi";
const IMAGE: &str = "belljar-bench-tree";
const COPY: &str = "belljar-bench-copy";

pub struct Image;

pub fn image(tree: &Tree) -> Result<Image, String> {
    place::program("docker").ok_or("there is no docker in PATH")?;
    place::said(Command::new("docker").args(["version", "--format", "{{.Server.Version}}"]))
        .ok_or("no docker engine answers")?;
    println!("making an image of {}", tree.path.display());
    let mut import = Command::new("/bin/bash");
    import.args(["-o", "pipefail", "-c", "tar -C \"$1\" -c . | docker import - \"$2\"", "bash"]);
    import.arg(&tree.path).arg(IMAGE);
    first(import)?;
    let image = Image;
    first(command("docker", &["create", "--name", IMAGE, IMAGE, "/none"], &[]))?;
    Ok(image)
}

impl Image {
    pub fn way(&self) -> Way {
        let commit = command("docker", &["commit", IMAGE, COPY], &[]);
        Way::new(NAME, commit, command("docker", &["rmi", COPY], &[]), "needs an image of the tree, and an engine")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        for words in [["rm", IMAGE], ["rmi", IMAGE]] {
            if let Err(error) = first(command("docker", &words, &[])) {
                eprintln!("left behind: {error}");
            }
        }
    }
}
