//! Where paths that policies speak of lead to on this host: looked up here, so that the policy can be told.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::survey::by_letter;

/// Those that lead over a link, and where to.
pub fn among(paths: Vec<String>) -> BTreeMap<String, String> {
    let mut known = HashMap::new();
    let mut links = BTreeMap::new();
    for path in paths {
        let real = real(Path::new(&path), &mut known);
        if real != Path::new(&path) {
            links.insert(path, real.to_string_lossy().into_owned());
        }
    }
    links
}

/// Most paths have their folders in common, so each folder is looked at once. What is not there leads to where it would be.
fn real(path: &Path, known: &mut HashMap<PathBuf, PathBuf>) -> PathBuf {
    if let Some(real) = known.get(path) {
        return real.clone();
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    let parent = real(parent, known);
    let here = parent.join(name);
    let real = match std::fs::read_link(&here) {
        Ok(target) => std::fs::canonicalize(&here).unwrap_or_else(|_| by_letter(&parent.join(target))),
        Err(_) => here,
    };
    known.insert(path.to_owned(), real.clone());
    real
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_leads_over_every_link_on_its_way() {
        let folder = std::env::temp_dir().join(format!("belljar-links-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("real/inner")).expect("a folder");
        let folder = folder.canonicalize().expect("it is there");
        symlink("real", folder.join("link")).expect("a link");
        symlink("inner", folder.join("real/again")).expect("a link");
        symlink("../nowhere/./x", folder.join("real/away")).expect("a link");
        let at = |path: &str| folder.join(path).to_string_lossy().into_owned();
        let paths = ["real", "link", "link/x/y", "link/again/z", "link/away/z", "absent/x"];
        let links = among(paths.iter().map(|path| at(path)).collect());
        let wanted = [
            ("link", "real"),
            ("link/x/y", "real/x/y"),
            ("link/again/z", "real/inner/z"),
            ("link/away/z", "nowhere/x/z"),
        ];
        let wanted: BTreeMap<String, String> = wanted.iter().map(|(path, real)| (at(path), at(real))).collect();
        std::fs::remove_dir_all(&folder).expect("it was ours");
        assert_eq!(links, wanted);
    }
}
