//! Plans as text, compared with what they were: without root, without doing anything.

use std::path::PathBuf;
use std::time::Duration;

use model::{
    AUTHORITIES, Access, Command, Files, Gated, Held, JAVA_AUTHORITIES, Kept, Limits, Network, Origin, Place, Powers,
    Stack, Wall,
};

use crate::assess::assess;
use crate::groups::Placement;
use crate::host::{Host, Identity};
use crate::plan::{Mode, Unplannable, describe, plan};
use crate::trust::Trust;

fn powers() -> Powers {
    let place = |path: &str, access, origin, folder| Place { path: path.into(), access, folder, origin, owner: (0, 0) };
    Powers {
        command: Command {
            program: "/usr/bin/cargo".into(),
            arguments: ["cargo", "test"].map(Into::into).to_vec(),
            directory: "/srv/project".into(),
            terminal: false,
        },
        files: Files {
            ground: model::Ground::Host,
            places: vec![
                place("/etc/ssl/certs", Access::Read, Origin::System, true),
                place("/etc/services", Access::Read, Origin::System, false),
                place("/home/alice/.cargo/bin", Access::Read, Origin::Toolchain, true),
                place("/srv/project", Access::Write, Origin::Workspace, true),
                place("/srv/project/vendor", Access::Read, Origin::Asked, true),
                place("/usr", Access::Read, Origin::System, true),
            ],
            links: vec![("/bin".into(), "usr/bin".into())],
            hidden: vec![("/srv/project/.secrets".into(), true), ("/srv/project/key.pem".into(), false)],
            home: "/home/alice".into(),
            user_name: "alice".to_owned(),
        },
        environment: vec![("PATH".into(), "/usr/bin".into())],
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

/// The same over layers, where a snapshot was taken.
fn layered() -> Powers {
    let mut powers = powers();
    powers.files.places[3].access = Access::Layered;
    powers
}

fn stacks() -> Vec<Stack> {
    let layer = |id: &str| PathBuf::from("/home/alice/.local/state/belljar/layers").join(id);
    let kept = Kept::Overlay { earlier: vec![layer("a/0/upper")], layer: layer("b/0") };
    vec![Stack { place: "/srv/project".into(), kept, begun: 1 }]
}

fn host() -> Host {
    Host {
        identity: Identity::Ordinary { user: 1000, group: 1000 },
        landlock: 7,
        groups: Placement::Nowhere { why: "this is a test".to_owned() },
        processors: 4,
        devices: ["/dev/null", "/dev/tty"].map(PathBuf::from).to_vec(),
    }
}

/// As on a host that has some of them.
fn trust(powers: &Powers) -> Trust {
    let Network::Gated(Gated { reads: true, .. }) = &powers.network else { return Trust::default() };
    Trust {
        files: [AUTHORITIES, JAVA_AUTHORITIES].map(PathBuf::from).to_vec(),
        replaced: vec![
            ("/etc/ssl/certs/ca-certificates.crt".into(), AUTHORITIES),
            ("/etc/ssl/certs/java/cacerts".into(), JAVA_AUTHORITIES),
            ("/opt/nobody-sees/cacerts".into(), JAVA_AUTHORITIES),
            ("/srv/project/cacerts".into(), JAVA_AUTHORITIES),
        ],
        well_known: ["/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/bin/bundle.pem"]
            .map(|path| (path.into(), AUTHORITIES))
            .to_vec(),
    }
}

fn gated(gated: Gated) -> Powers {
    Powers { network: Network::Gated(gated), ..powers() }
}

fn text(powers: &Powers, host: &Host, mode: Mode) -> String {
    let blueprint = plan(powers, &stacks(), trust(powers), host, mode).expect("it can be planned");
    let steps = describe(&blueprint, &powers.command, "payload");
    let steps: Vec<String> = steps.iter().map(|step| format!("{:<8} {}", step.by, step.does)).collect();
    let walls = assess(powers, host, mode);
    let walls: Vec<String> =
        walls.walls.iter().map(|holding| format!("{:<15} {:?}", holding.wall.name(), holding.held)).collect();
    format!("{}\n\n{}", steps.join("\n"), walls.join("\n"))
}

#[test]
fn an_ordinary_user_without_control_groups() {
    insta::assert_snapshot!(text(&powers(), &host(), Mode::Full));
}

#[test]
fn root_with_older_control_groups() {
    let groups = Placement::Older {
        memory: "/sys/fs/cgroup/memory".into(),
        cpu: Some("/sys/fs/cgroup/cpu".into()),
        accounting: Some("/sys/fs/cgroup/cpuacct".into()),
    };
    let host = Host { identity: Identity::Root { payload: 0x7000_002a }, groups, ..host() };
    insta::assert_snapshot!(text(&powers(), &host, Mode::Full));
}

#[test]
fn an_ordinary_user_with_a_delegated_unified_group() {
    let groups = Placement::Unified { parent: "/sys/fs/cgroup/user.slice/app.slice".into(), cpu: true };
    insta::assert_snapshot!(text(&powers(), &Host { groups, ..host() }, Mode::Full));
}

#[test]
fn an_ordinary_user_over_layers() {
    insta::assert_snapshot!(text(&layered(), &host(), Mode::Full));
}

#[test]
fn root_over_layers() {
    let host = Host { identity: Identity::Root { payload: 0x7000_002a }, ..host() };
    insta::assert_snapshot!(text(&layered(), &host, Mode::Full));
}

#[test]
fn without_namespaces_changes_are_not_silently_made_for_good_or_refused() {
    let refused =
        plan(&layered(), &stacks(), Trust::default(), &host(), Mode::Reduced).expect_err("nothing keeps changes apart");
    insta::assert_snapshot!(format!("{refused}; fix: {}", refused.fix()));
}

#[test]
fn a_host_without_namespaces() {
    insta::assert_snapshot!(text(&powers(), &host(), Mode::Reduced));
}

#[test]
fn a_terminal_and_an_older_kernel() {
    let mut powers = powers();
    powers.command.terminal = true;
    insta::assert_snapshot!(text(&powers, &Host { landlock: 2, ..host() }, Mode::Full));
}

#[test]
fn a_way_out_that_is_not_read() {
    let powers = gated(Gated { hosts: vec!["example.org:443".to_owned()], ..Gated::default() });
    insta::assert_snapshot!(text(&powers, &host(), Mode::Full));
}

#[test]
fn root_with_a_way_out_that_is_read() {
    let powers = gated(Gated { loopback: vec![5432, 8080], reads: true, ..Gated::default() });
    let host = Host { identity: Identity::Root { payload: 0x7000_002a }, ..host() };
    insta::assert_snapshot!(text(&powers, &host, Mode::Full));
}

/// Whoever grants all of /etc does not make programs trust what lies there.
#[test]
fn a_file_of_the_gate_is_never_hidden_by_what_is_granted() {
    let mut powers = gated(Gated { reads: true, ..Gated::default() });
    powers.files.places[0].path = "/etc".into();
    let refused = plan(&powers, &stacks(), trust(&powers), &host(), Mode::Full).expect_err("it would be hidden");
    assert_eq!(refused, Unplannable::Covered(AUTHORITIES.into()));
}

/// Without a namespace there would be no network at all, which is not what was granted.
#[test]
fn without_namespaces_there_is_no_way_out_and_none_is_promised() {
    let powers = gated(Gated::default());
    let refused = plan(&powers, &[], Trust::default(), &host(), Mode::Reduced).expect_err("nothing leads to the gate");
    let held = assess(&powers, &host(), Mode::Reduced);
    let held = held.walls.iter().find(|holding| holding.wall == Wall::Network).map(|holding| &holding.held);
    assert!(matches!(held, Some(Held::Not(_))), "{held:?}");
    insta::assert_snapshot!(format!("{refused}; fix: {}", refused.fix()));
}

/// The order that keeps the host's own folders clean: nothing is made once anything is mounted.
#[test]
fn nothing_is_made_after_the_first_mount() {
    let blueprint = plan(&layered(), &stacks(), Trust::default(), &host(), Mode::Full).expect("it can be planned");
    use guest::Step;
    let makes = |step: &Step| matches!(step, Step::Directory { .. } | Step::File { .. } | Step::Link { .. });
    let mounts = |step: &Step| {
        matches!(
            step,
            Step::Bind { .. }
                | Step::Overlay { .. }
                | Step::Scratch { .. }
                | Step::Hide { .. }
                | Step::Replace { .. }
                | Step::Proc { .. }
        )
    };
    let first_mount = blueprint.steps.iter().position(mounts).expect("a plan mounts something");
    assert!(!blueprint.steps[first_mount..].iter().any(makes));
}

/// Whatever the host lacks, no wall goes unmentioned.
#[test]
fn every_wall_is_reported_everywhere() {
    for identity in [Identity::Ordinary { user: 1, group: 1 }, Identity::Root { payload: 2 }, Identity::PowerlessRoot] {
        for landlock in 0..8 {
            for mode in [Mode::Full, Mode::Reduced] {
                let host = Host { identity, landlock, ..host() };
                assert_eq!(assess(&powers(), &host, mode).unreported().count(), 0);
            }
        }
    }
}
