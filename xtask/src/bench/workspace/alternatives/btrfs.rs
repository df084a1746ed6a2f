//! Btrfs, which shares blocks between copies: on an image that is kept, mounted for the time of the measuring.

use std::path::{Path, PathBuf};

use super::{Way, command, first};
use crate::bench::workspace::trees::{Tree, cannot, kept};
use crate::place;

pub const NAMES: [&str; 2] = ["cp -a --reflink=always, on btrfs", "btrfs subvolume snapshot, delete"];
/// Of the image, which is sparse.
const BYTES: u64 = 16 << 30;

pub struct Mounted {
    path: PathBuf,
}

pub fn mount(tree: &Tree) -> Result<Mounted, String> {
    for program in ["mkfs.btrfs", "btrfs"] {
        place::program(program).ok_or(format!("there is no {program} in PATH"))?;
    }
    let image = kept().join(format!("tree-{}.btrfs", tree.files));
    if image.exists() {
        return mount_at(&image);
    }
    println!("making {}, once", image.display());
    let unfinished = image.with_extension("unfinished");
    std::fs::File::create(&unfinished).and_then(|file| file.set_len(BYTES)).map_err(cannot("make", &unfinished))?;
    first(command("mkfs.btrfs", &["--quiet", "--force"], &[&unfinished]))?;
    let mounted = mount_at(&unfinished)?;
    first(command("btrfs", &["subvolume", "create"], &[&mounted.tree()]))?;
    first(command("cp", &["-a", "--no-target-directory"], &[&tree.path, &mounted.tree()]))?;
    drop(mounted);
    std::fs::rename(&unfinished, &image).map_err(cannot("name", &image))?;
    mount_at(&image)
}

fn mount_at(image: &Path) -> Result<Mounted, String> {
    // Not where the benchmark removes its own things: a mount that can't be undone must keep what is in it.
    let path = kept().join("btrfs");
    std::fs::create_dir_all(&path).map_err(cannot("make", &path))?;
    first(command("mount", &["-t", "btrfs", "-o", "loop"], &[image, &path]))?;
    Ok(Mounted { path })
}

impl Mounted {
    pub fn ways(&self) -> [Way; 2] {
        let (tree, copy) = (self.tree(), self.path.join("copy"));
        let [reflink, snapshot] = NAMES;
        [
            Way::new(
                reflink,
                command("cp", &["-a", "--reflink=always"], &[&tree, &copy]),
                command("rm", &["-rf"], &[&copy]),
                "",
            ),
            Way::new(
                snapshot,
                command("btrfs", &["subvolume", "snapshot"], &[&tree, &copy]),
                command("btrfs", &["subvolume", "delete"], &[&copy]),
                "the tree must be a subvolume; blocks are freed later",
            ),
        ]
    }

    fn tree(&self) -> PathBuf {
        self.path.join("tree")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = first(command("umount", &[], &[&self.path])) {
            eprintln!("left behind: {}: {error}", self.path.display());
        }
    }
}
