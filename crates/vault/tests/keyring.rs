//! The desktop's keyring: a real one, of this test alone. Each half runs in a process of its own, as it needs other
//! variables.
// What is skipped is said.
#![allow(clippy::print_stderr)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_vault::Vault;
use model::{NewSecret, SecretSource, SecretText};

const VALUE: &str = "fish-under-glass-9137";
/// Where the inner half works.
const ROOM: &str = "BELLJAR_KEYRING_TEST";

fn room(name: &str) -> PathBuf {
    let room = std::env::temp_dir().join(format!("belljar-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&room).expect("a folder for the test");
    std::fs::set_permissions(&room, std::fs::Permissions::from_mode(0o700)).expect("ours");
    room
}

fn new(source: &str, value: Option<&str>) -> NewSecret {
    NewSecret {
        name: "TOKEN".to_owned(),
        source: SecretSource::read(source).expect("a source"),
        value: value.map(|value| SecretText::read(value.as_bytes()).expect("a value")),
        hosts: None,
        ttl: None,
        variable: None,
        prefix: None,
    }
}

fn is_there(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).is_file())
}

#[test]
fn a_secret_in_a_real_keyring_comes_back_and_goes() {
    for program in ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"] {
        if !is_there(program) {
            eprintln!("skipped: `{program}` is not installed (packages dbus, gnome-keyring, libsecret-tools)");
            return;
        }
    }
    let room = room("keyring");
    let script = "printf test | gnome-keyring-daemon --unlock --components=secrets > /dev/null && exec \"$0\" \"$@\"";
    let output = Command::new("timeout")
        .args(["60", "dbus-run-session", "--", "sh", "-c", script])
        .arg(std::env::current_exe().expect("ours"))
        .args(["--exact", "--ignored", "inner_with_a_keyring"])
        .env("HOME", &room)
        .env("XDG_RUNTIME_DIR", &room)
        .env(ROOM, &room)
        .output()
        .expect("it starts");
    std::fs::remove_dir_all(&room).ok();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert!(!said.contains(VALUE));
}

#[test]
#[ignore = "started by the test above"]
fn inner_with_a_keyring() {
    let Some(room) = std::env::var_os(ROOM) else { return };
    let vault = Vault::at(Path::new(&room).join("secrets"));
    vault.set(&new("keyring", Some(VALUE))).expect("it is kept");
    assert_eq!(vault.fetch("TOKEN").expect("it is there").value.reveal(), VALUE);
    let file = std::fs::read_to_string(Path::new(&room).join("secrets/TOKEN.secret")).expect("ours");
    assert!(!file.contains(VALUE));
    let asked = || {
        let words = ["lookup", "application", "belljar", "name", "TOKEN"];
        Command::new("secret-tool").args(words).output().expect("it starts").stdout
    };
    assert_eq!(asked(), VALUE.as_bytes());
    vault.set(&new("store", Some("another"))).expect("it is kept elsewhere");
    assert_eq!(asked(), b"", "what is no longer asked is not left behind");
    vault.set(&new("keyring", Some(VALUE))).expect("it is kept");
    vault.remove("TOKEN").expect("it is removed");
    assert_eq!(asked(), b"");
}

#[test]
fn without_the_tool_the_package_is_named() {
    let room = room("no-keyring");
    let output = Command::new(std::env::current_exe().expect("ours"))
        .args(["--exact", "--ignored", "inner_without_a_tool"])
        .env("PATH", "/nowhere")
        .env(ROOM, &room)
        .output()
        .expect("it starts");
    std::fs::remove_dir_all(&room).ok();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "started by the test above"]
fn inner_without_a_tool() {
    let Some(room) = std::env::var_os(ROOM) else { return };
    let vault = Vault::at(Path::new(&room).join("secrets"));
    let error = vault.set(&new("keyring", Some(VALUE))).expect_err("there is no tool");
    assert!(error.fix().contains("libsecret-tools"), "{}", error.fix());
    assert!(!format!("{error} {error:?}").contains(VALUE));
    assert_eq!(vault.list().expect("listed"), []);
}
