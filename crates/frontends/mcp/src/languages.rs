//! Code without a file: which program of the host runs it, and by which word it is told the code. As a word of the command it
//! is seen by the same scanners as any other.

use std::path::{Path, PathBuf};

use crate::arguments::Language;
use crate::said::Failure;

/// The kernel takes no longer word.
const LONGEST: usize = 120 << 10;

impl Language {
    /// Programs, any of which will do; and the word before the code.
    fn known(self) -> (&'static [&'static str], &'static str) {
        match self {
            Language::Python => (&["python3", "python"], "-c"),
            Language::Javascript => (&["node", "nodejs", "bun"], "-e"),
            Language::Bash => (&["bash"], "-c"),
            Language::Sh => (&["sh"], "-c"),
            Language::Ruby => (&["ruby"], "-e"),
            Language::Perl => (&["perl"], "-e"),
            Language::Php => (&["php"], "-r"),
            Language::Lua => (&["lua", "lua5.4", "luajit"], "-e"),
        }
    }

    pub fn command(self, code: String) -> Result<Vec<String>, Failure> {
        let (programs, word) = self.known();
        if code.len() > LONGEST {
            return Err(Failure::wrong(format!("the code has {} bytes, and {LONGEST} are the most", code.len()))
                .fix("write it into a file with `write_file`, and run that with `run_command`"));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let is_there = |program: &&&str| folders.iter().any(|folder| is_program(&folder.join(program)));
        let program = programs.iter().find(is_there).ok_or_else(|| {
            let names = programs.join("`, `");
            Failure::new("no-language", format!("this host has no `{names}`, which would run that language"))
                .fix("use another language, or have it installed for the server")
        })?;
        Ok(vec![(*program).to_owned(), word.to_owned(), code])
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|stat| stat.is_file() && stat.permissions().mode() & 0o111 != 0)
}
