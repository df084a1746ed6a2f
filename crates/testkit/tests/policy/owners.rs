//! The machine's own policy, and the user's in the home that the user record names: no variable leads past them. Tried
//! in a mount namespace of their own, where `/etc/belljar` and that home are the test's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use belljar_testkit::contestant::belljar;
use belljar_testkit::twice;
use belljar_testkit::{Project, Who};
use libtest_mimic::Trial;

use crate::desk::expected;

pub fn trials() -> Vec<Trial> {
    let all: [(&str, twice::Check); 4] = [
        ("nothing_widens_what_is_managed", managed),
        ("a_managed_policy_that_others_can_write_is_none", writable),
        ("no_variable_leads_past_the_users_policy", variables),
        ("a_managed_preset_is_the_machines", presets),
    ];
    // A namespace of mounts needs root to be made; who asks in it is root, too.
    all.into_iter()
        .map(|(name, check)| twice::trial(name, Who::Root, twice::why_not(Who::Root), move || check(Who::Root)))
        .collect()
}

const TOUCH: &str = "[[rule]]\nid = \"no\"\nwhen = { program = \"touch\" }\nthen = \"deny\"\nwhy = \"no touching\"\n";

struct Machine {
    project: Project,
}

impl Machine {
    fn new() -> Result<Machine, String> {
        let project = Project::new(Who::Root).map_err(|error| error.to_string())?;
        let machine = Machine { project };
        for folder in ["etc", "etc-work", "home/.config/belljar", "config/belljar"] {
            fs::create_dir_all(machine.folder().join(folder)).map_err(|error| error.to_string())?;
        }
        Ok(machine)
    }

    fn folder(&self) -> &Path {
        &self.project.state
    }

    fn put(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.folder().join(name);
        let folder = path.parent().ok_or("a file is in a folder")?;
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        fs::write(&path, format!("version = 1\n{text}")).map_err(|error| error.to_string())
    }

    /// belljar where `etc` is laid over /etc, and root's home is `home`.
    fn belljar(&self, words: &[&str]) -> Command {
        let folder = self.folder().display();
        let script = format!(
            "mount -t overlay -o lowerdir=/etc,upperdir={folder}/etc,workdir={folder}/etc-work overlay /etc && \
             mount --bind {folder}/home /root && exec \"$@\""
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
        command.arg(belljar()).args(words).current_dir(&self.project.work).env_clear();
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
        command.env("XDG_STATE_HOME", self.folder().join("state"));
        command
    }
}

fn managed(_: Who) -> Result<(), String> {
    let machine = Machine::new()?;
    let touch = ["run", "--", "touch", "x"];
    expected(&mut machine.belljar(&touch), 0, "1 added")?;
    machine.put("etc/belljar/policy.toml", &format!("{TOUCH}[limits]\nfiles = 300\n[approvals]\nalways = false\n"))?;
    expected(&mut machine.belljar(&touch), 123, "no touching")?;
    machine.put(
        "home/.config/belljar/policy.toml",
        "extends = [\"open\"]\n[[rule]]\nwhen = { program = \"touch\" }\nthen = \"allow\"\nwhy = \"mine\"\n",
    )?;
    machine
        .project
        .put(
            "belljar.toml",
            "version = 1\n[[rule]]\nwhen = { program = \"touch\" }\nthen = \"allow\"\nwhy = \"mine\"\n",
        )
        .map_err(|error| error.to_string())?;
    expected(&mut machine.belljar(&["policy", "trust"]), 0, "")?;
    expected(&mut machine.belljar(&touch), 123, "no touching")?;
    expected(machine.belljar(&touch).env("XDG_CONFIG_HOME", "/nowhere").env("HOME", "/nowhere"), 123, "no touching")?;
    let said = expected(&mut machine.belljar(&["run", "-q", "--files", "900", "--", "sh", "-c", "ulimit -n"]), 0, "")?;
    match String::from_utf8_lossy(&said.out).trim() {
        "300" => Ok(()),
        other => Err(format!("{other} files can be open")),
    }
}

fn writable(_: Who) -> Result<(), String> {
    let machine = Machine::new()?;
    machine.put("etc/belljar/policy.toml", TOUCH)?;
    expected(&mut machine.belljar(&["run", "--", "true"]), 0, "")?;
    let open = |name: &str, mode| fs::set_permissions(machine.folder().join(name), fs::Permissions::from_mode(mode));
    for (name, wide, narrow) in [("etc/belljar/policy.toml", 0o666, 0o644), ("etc/belljar", 0o777, 0o755)] {
        open(name, wide).map_err(|error| error.to_string())?;
        expected(&mut machine.belljar(&["run", "--", "true"]), 125, "can be changed by others than root")?;
        open(name, narrow).map_err(|error| error.to_string())?;
    }
    expected(&mut machine.belljar(&["run", "--", "true"]), 0, "").map(|_| ())
}

fn variables(_: Who) -> Result<(), String> {
    let machine = Machine::new()?;
    let touch = ["run", "--", "touch", "x"];
    let config = machine.folder().join("config");
    // The control: another folder's policy is heard, so a variable does lead there.
    machine.put("config/belljar/policy.toml", TOUCH)?;
    expected(machine.belljar(&touch).env("XDG_CONFIG_HOME", &config), 123, "no touching")?;
    machine.put("home/.config/belljar/policy.toml", TOUCH)?;
    machine.put("config/belljar/policy.toml", "extends = [\"open\"]\n")?;
    for (name, value) in [
        ("XDG_CONFIG_HOME", config.as_path()),
        ("XDG_CONFIG_HOME", Path::new("/nowhere")),
        ("HOME", Path::new("/nowhere")),
    ] {
        expected(machine.belljar(&touch).env(name, value), 123, "no touching")?;
    }
    // Nor does a list of trust that a variable leads to: the recorded home has a folder, so that is where it is.
    machine
        .project
        .put("belljar.toml", "version = 1\n[environment]\npass = [\"SECRET\"]\n")
        .map_err(|error| error.to_string())?;
    expected(&mut machine.belljar(&["policy", "trust"]), 0, "")?;
    let trusted = machine.folder().join("home/.config/belljar/trusted");
    fs::rename(&trusted, config.join("belljar/trusted")).map_err(|error| format!("nothing was trusted: {error}"))?;
    let words = ["run", "-q", "--", "sh", "-c", "echo \"[$SECRET]\""];
    let said = expected(machine.belljar(&words).env("XDG_CONFIG_HOME", &config).env("SECRET", "hunter2"), 0, "")?;
    match String::from_utf8_lossy(&said.out).trim() {
        "[]" => Ok(()),
        other => Err(format!("a list of trust from elsewhere counted: {other}")),
    }
}

fn presets(_: Who) -> Result<(), String> {
    let machine = Machine::new()?;
    let touch = ["run", "--", "touch", "x"];
    machine.put("etc/belljar/policy.toml", "extends = [\"corp\"]\n")?;
    machine.put("etc/belljar/presets/corp.toml", TOUCH)?;
    expected(&mut machine.belljar(&touch), 123, "no touching")?;
    machine.put("home/.config/belljar/presets/corp.toml", "extends = [\"open\"]\n")?;
    machine.put("config/belljar/presets/corp.toml", "extends = [\"open\"]\n")?;
    expected(&mut machine.belljar(&touch), 123, "no touching")?;
    let config = machine.folder().join("config");
    expected(machine.belljar(&touch).env("XDG_CONFIG_HOME", &config), 123, "no touching")?;
    // Nor does another folder for state begin a new count.
    machine.put("etc/belljar/policy.toml", "[[agent]]\nname = \"*\"\nrate = \"2/h\"\n")?;
    for (number, code) in [0, 0, 123].into_iter().enumerate() {
        let state = machine.folder().join(format!("state{number}"));
        expected(machine.belljar(&["run", "--", "true"]).env("XDG_STATE_HOME", state), code, "")?;
    }
    Ok(())
}
