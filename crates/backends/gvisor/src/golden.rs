//! What gVisor is told, compared with what it was: without root, without doing anything.

use std::time::Duration;

use model::{Access, Command, Files, Gated, Ground, Limits, Network, Origin, Place, Powers};

use crate::bundle::{Numbers, arguments, config};
use crate::errand;

fn powers() -> Powers {
    let place = |path: &str, access, origin| Place { path: path.into(), access, folder: true, origin, owner: (0, 0) };
    Powers {
        command: Command {
            program: "/usr/bin/cargo".into(),
            arguments: ["cargo", "test"].map(Into::into).to_vec(),
            directory: "/srv/project".into(),
            terminal: false,
        },
        files: Files {
            ground: Ground::Host,
            places: vec![
                place("/srv/out", Access::Write, Origin::Asked),
                place("/srv/project", Access::Layered, Origin::Workspace),
                place("/usr", Access::Read, Origin::System),
            ],
            links: vec![("/bin".into(), "usr/bin".into())],
            hidden: vec![("/srv/project/.secrets".into(), true)],
            home: "/home/alice".into(),
            user_name: "alice".to_owned(),
        },
        environment: vec![("SECRET".into(), "sesame".into())],
        network: Network::Closed,
        limits: Limits {
            wall_time: Some(Duration::from_secs(60)),
            millicpus: Some(1500),
            cpu_time: Some(Duration::from_secs(30)),
            memory: 1 << 30,
            processes: 256,
            disk: 64 << 20,
            inodes: 8192,
            open_files: 1024,
            largest_file: 64 << 20,
            output: Some(1 << 20),
        },
    }
}

fn text(powers: &Powers) -> String {
    let words: Vec<String> =
        arguments(powers, Numbers::FORESEEN).iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let steps = errand::describe(powers, (1000, 1000));
    let steps: Vec<String> = steps.iter().map(|step| format!("{:<8} {}", step.by, step.does)).collect();
    let mut config: serde_json::Value = serde_json::from_slice(&config(powers)).expect("json");
    // Whether they keep their order is up to who else is built.
    config.sort_all_objects();
    let config = serde_json::to_string_pretty(&config).expect("text");
    format!("{}\n\n{config}\n{}", words.join("\n"), steps.join("\n"))
}

#[test]
fn without_a_network() {
    insta::assert_snapshot!(text(&powers()));
}

#[test]
fn through_the_gate_and_with_a_terminal() {
    let mut powers = powers();
    powers.command.terminal = true;
    powers.network = Network::Gated(Gated::default());
    insta::assert_snapshot!(text(&powers));
}

#[test]
fn what_is_told_in_text_has_no_secret_in_it() {
    let config = String::from_utf8_lossy(&config(&powers())).into_owned();
    assert!(!config.contains("sesame") && !config.contains("cargo"), "{config}");
}
