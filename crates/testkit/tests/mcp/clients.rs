//! The official clients, each in a folder that the first test that needs it makes, at a fixed version.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::{holds, told};

const PYTHON: &str = "mcp==2.3.0";
const NODE: &str = "@modelcontextprotocol/client@2.4.0";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    Python,
    Node,
}

pub const ALL: &[(&str, Driver)] = &[("the_python_client", Driver::Python), ("the_typescript_client", Driver::Node)];

pub fn why_not(driver: Driver) -> Option<String> {
    let works = |program: &str| {
        let tried = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let needed: &[&str] = match driver {
        Driver::Python => &["python3"],
        Driver::Node => &["node", "npm"],
    };
    needed.iter().find(|program| !works(program)).map(|program| format!("there is no {program}"))
}

/// Does what the plan says, and says what came of it.
pub fn drive(driver: Driver, plan: &Value, folder: &Path) -> Result<Value, String> {
    let home = installed(driver)?;
    let written = folder.join("plan.json");
    told(fs::write(&written, plan.to_string()))?;
    let mut command = match driver {
        Driver::Python => Command::new(home.join("bin/python")),
        Driver::Node => Command::new("node"),
    };
    let script = match driver {
        Driver::Python => home.join("drive.py"),
        Driver::Node => home.join("drive.mjs"),
    };
    let output = told(command.arg(script).arg(&written).stdin(Stdio::null()).output())?;
    let error = String::from_utf8_lossy(&output.stderr);
    holds(output.status.success(), format!("the client failed: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|bad| format!("{bad}: {error}"))
}

/// Tests are processes of their own, and several may come at once.
fn installed(driver: Driver) -> Result<PathBuf, String> {
    let name = if driver == Driver::Python { "mcp-python" } else { "mcp-node" };
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    told(fs::create_dir_all(&home))?;
    let lock = told(File::create(home.join("lock")))?;
    told(flock(&lock, FlockOperation::LockExclusive))?;
    let (wanted, script, text) = match driver {
        Driver::Python => (PYTHON, "drive.py", include_str!("drive.py")),
        Driver::Node => (NODE, "drive.mjs", include_str!("drive.mjs")),
    };
    let mark = home.join("installed");
    if fs::read_to_string(&mark).unwrap_or_default() != wanted {
        match driver {
            Driver::Python => {
                run(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
                run(Command::new(home.join("bin/pip"))
                    .args(["install", "--quiet", "--disable-pip-version-check", wanted]))?;
            }
            Driver::Node => run(Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
                .arg(&home)
                .arg(wanted))?,
        }
        told(fs::write(&mark, wanted))?;
    }
    // Written anew only if it is another: somebody may be reading it.
    if fs::read_to_string(home.join(script)).unwrap_or_default() != text {
        told(fs::write(home.join(script), text))?;
    }
    Ok(home)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = told(command.stdin(Stdio::null()).output())?;
    holds(output.status.success(), format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
}
