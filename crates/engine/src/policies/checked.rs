//! Which texts of rules in another language were found in order before: checking them anew takes longer than a whole sandbox.
//!
//! A mark is an empty file whose name is a digest of the texts, the language's schema and this belljar. Whether texts are in order
//! depends on nothing else, so a mark is right for ever; and who could forge one can write to the user's state, and would only
//! have rules obeyed that deny where they can't be evaluated. Of the machine's own rules only a mark of root's counts.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use model::{RuleLanguage, RuleText};
use policy::Owner;

/// Of the machine's own rules, made when root loads them.
const MACHINE: &str = "/var/lib/belljar/checked";

/// Where marks are, and who we are.
pub struct Marks {
    own: Option<PathBuf>,
    machine: PathBuf,
    us: u32,
}

impl Marks {
    /// In the user's state, where no variable leads away from it.
    pub fn below(home: Option<&Path>) -> Marks {
        let own = home.map(|home| home.join(".local/state/belljar/checked"));
        Marks { own, machine: MACHINE.into(), us: rustix::process::geteuid().as_raw() }
    }

    /// Whether these were found in order.
    pub fn know(&self, language: &dyn RuleLanguage, owner: Owner, files: &[RuleText<'_>]) -> bool {
        let Some(mark) = self.folder(owner).map(|folder| folder.join(name(language, files))) else { return false };
        let maker = if owner == Owner::Managed { 0 } else { self.us };
        std::fs::symlink_metadata(mark).is_ok_and(|stat| stat.is_file() && stat.uid() == maker)
    }

    /// Remembers that they are. What can't be remembered is checked again the next time, which takes longer and is no worse.
    pub fn remember(&self, language: &dyn RuleLanguage, owner: Owner, files: &[RuleText<'_>]) -> io::Result<()> {
        let is_ours = owner != Owner::Managed || self.us == 0;
        let Some(folder) = self.folder(owner).filter(|_| is_ours) else { return Ok(()) };
        std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        sweep(folder)?;
        let mark = folder.join(name(language, files));
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(mark).map(drop)
    }

    fn folder(&self, owner: Owner) -> Option<&Path> {
        if owner == Owner::Managed { Some(&self.machine) } else { self.own.as_deref() }
    }
}

/// Without their places: what is in order lies anywhere.
fn name(language: &dyn RuleLanguage, files: &[RuleText<'_>]) -> String {
    let mut hasher = blake3::Hasher::new();
    let known = [env!("CARGO_PKG_VERSION"), language.name(), language.schema()];
    for text in known.into_iter().chain(files.iter().map(|file| file.text)) {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Marks of texts that were changed since are never asked for again.
const MOST: usize = 100;

fn sweep(folder: &Path) -> io::Result<()> {
    let marks: Vec<PathBuf> =
        std::fs::read_dir(folder)?.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    if marks.len() >= MOST {
        marks.iter().try_for_each(std::fs::remove_file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::{BadRules, ForeignRules};

    use super::*;

    struct Tongue(&'static str);

    impl RuleLanguage for Tongue {
        fn name(&self) -> &'static str {
            "a tongue"
        }
        fn extension(&self) -> &'static str {
            "tongue"
        }
        fn read(&self, _: &[RuleText<'_>]) -> Result<Box<dyn ForeignRules>, BadRules> {
            unreachable!("nobody reads here")
        }
        fn schema(&self) -> &'static str {
            self.0
        }
    }

    #[test]
    fn a_mark_is_for_these_texts_by_whoever_may_make_it() {
        let root = std::env::temp_dir().join(format!("belljar-marks-{}", std::process::id()));
        let us = rustix::process::geteuid().as_raw();
        let marks = Marks { own: Some(root.join("own")), machine: root.join("machine"), us };
        let text = |text| [RuleText { file: "a", text }];
        assert!(!marks.know(&Tongue("s"), Owner::User, &text("one")));
        marks.remember(&Tongue("s"), Owner::User, &text("one")).expect("a file");
        assert!(marks.know(&Tongue("s"), Owner::User, &text("one")));
        assert!(!marks.know(&Tongue("s"), Owner::User, &text("two")));
        assert!(!marks.know(&Tongue("s"), Owner::User, &[text("one"), text("")].concat()));
        assert!(!marks.know(&Tongue("other"), Owner::User, &text("one")));
        assert!(
            !marks.know(&Tongue("s"), Owner::Managed, &text("one")),
            "nobody's mark counts for the machine's rules"
        );
        // As somebody else: neither can they mark the machine's rules, nor do others' marks count for them.
        let other = Marks { own: Some(root.join("own")), machine: root.join("machine"), us: us + 1 };
        assert!(!other.know(&Tongue("s"), Owner::User, &text("one")));
        other.remember(&Tongue("s"), Owner::Managed, &text("one")).expect("nothing to do");
        assert!(!root.join("machine").exists());
        marks.remember(&Tongue("s"), Owner::Managed, &text("one")).expect("a file, if we are root");
        assert_eq!(other.know(&Tongue("s"), Owner::Managed, &text("one")), us == 0);
        std::fs::remove_dir_all(&root).expect("it was ours");
    }

    #[test]
    fn marks_of_old_texts_do_not_pile_up() {
        let root = std::env::temp_dir().join(format!("belljar-old-marks-{}", std::process::id()));
        let marks = Marks { own: Some(root.clone()), machine: root.clone(), us: rustix::process::geteuid().as_raw() };
        for number in 0..MOST * 2 {
            let text = number.to_string();
            marks.remember(&Tongue("s"), Owner::User, &[RuleText { file: "a", text: &text }]).expect("a file");
        }
        let left = std::fs::read_dir(&root).expect("a folder").count();
        std::fs::remove_dir_all(&root).expect("it was ours");
        assert!(left <= MOST, "{left}");
    }
}
