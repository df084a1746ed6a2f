//! Code that comes without a command: which program of the host runs it, and what its file is called.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::{Problem, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    Python,
    Javascript,
    Bash,
    Sh,
    Ruby,
    Perl,
    Php,
    Lua,
    Go,
}

impl Language {
    /// Programs, any of which will do; words before the file; the file.
    fn known(self) -> (&'static [&'static str], &'static [&'static str], &'static str) {
        match self {
            Language::Python => (&["python3", "python"], &[], "main.py"),
            Language::Javascript => (&["node", "nodejs", "bun"], &[], "main.js"),
            Language::Bash => (&["bash"], &[], "main.sh"),
            Language::Sh => (&["sh"], &[], "main.sh"),
            Language::Ruby => (&["ruby"], &[], "main.rb"),
            Language::Perl => (&["perl"], &[], "main.pl"),
            Language::Php => (&["php"], &[], "main.php"),
            Language::Lua => (&["lua", "lua5.4", "luajit"], &[], "main.lua"),
            Language::Go => (&["go"], &["run"], "main.go"),
        }
    }

    /// The command, and what the code's file must be called.
    pub fn command(self) -> Result<(Vec<String>, &'static str)> {
        let (programs, words, file) = self.known();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let is_there = |program: &&&str| folders.iter().any(|folder| is_program(&folder.join(program)));
        let program = programs.iter().find(is_there).ok_or_else(|| {
            let names = programs.join("`, `");
            Problem::wrong(format!("this host has no `{names}`, which would run that language"))
                .hint("install it for the service, or use `image` with one that has it and `command`")
        })?;
        let words = std::iter::once(*program).chain(words.iter().copied()).chain([file]);
        Ok((words.map(str::to_owned).collect(), file))
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|stat| stat.is_file() && stat.permissions().mode() & 0o111 != 0)
}
