//! Plans as text, compared with what they were; and what no grant at all can bring about. Without an engine.

use std::path::PathBuf;
use std::time::Duration;

use model::{Access, Command, Files, Gated, Ground, Kept, Limits, Network, Origin, Place, Powers, Stack};
use proptest::prelude::*;

use crate::assess::{Can, assess};
use crate::facts::{Engine, Facts, ImageFacts};
use crate::plan::{describe, plan};
use crate::trouble::Unusable;

fn powers() -> Powers {
    let place =
        |path: &str, access, origin| Place { path: path.into(), access, folder: true, origin, owner: (1000, 1000) };
    Powers {
        command: Command {
            program: "cargo".into(),
            arguments: ["cargo", "test"].map(Into::into).to_vec(),
            directory: "/srv/project".into(),
            terminal: false,
        },
        files: Files {
            ground: Ground::Image { name: Some("rust:1".to_owned()), runtime: None, pull: false },
            places: vec![
                place("/srv/data", Access::Read, Origin::Asked),
                place("/srv/out", Access::Write, Origin::Asked),
                place("/srv/project", Access::Layered, Origin::Workspace),
                // Of another ground, and so of no concern here.
                place("/usr", Access::Read, Origin::System),
                place("/home/alice/.cargo", Access::Read, Origin::Toolchain),
            ],
            links: Vec::new(),
            hidden: vec![("/srv/project/.env".into(), false)],
            home: "/home/alice".into(),
            user_name: "alice".to_owned(),
        },
        environment: vec![("HOME".into(), "/home/alice".into())],
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

fn stacks(kept: Kept) -> Vec<Stack> {
    vec![Stack { place: "/srv/project".into(), kept, begun: 1 }]
}

fn overlay() -> Vec<Stack> {
    let layer = |id: &str| PathBuf::from("/home/alice/.local/state/belljar/layers").join(id);
    stacks(Kept::Overlay { earlier: vec![layer("a/0/upper")], layer: layer("b/0") })
}

fn copy() -> Vec<Stack> {
    stacks(Kept::Copy { tree: "/root/.local/state/belljar/layers/b/0/tree".into() })
}

fn facts() -> Facts {
    Facts {
        engine: Engine {
            socket: "/var/run/docker.sock".into(),
            shown: "Docker 20.10.24 at /var/run/docker.sock".to_owned(),
            podman: false,
            rootless: false,
            owner: 0,
            seccomp: true,
            memory: true,
            swap: true,
            processes: true,
            processors: true,
            runtimes: vec!["runc".to_owned(), "runsc".to_owned()],
        },
        image: ImageFacts {
            name: "rust:1".to_owned(),
            id: format!("sha256:{}", "0".repeat(64)),
            volumes: vec!["/var/cache".to_owned()],
            search_path: "/usr/bin".to_owned(),
        },
        user_processes: None,
        caller: (1000, 1000),
        stranger: 0x7000_002a,
        id: "0123456789abcdef".to_owned(),
        labels: [("belljar.sandbox".to_owned(), "0123456789abcdef".to_owned())].into(),
        waiting_image: format!("sha256:{}", "1".repeat(64)),
        trust: None,
        profile: None,
        work: Some("/home/alice/.local/state/belljar/engine-work".into()),
    }
}

fn text(powers: &Powers, stacks: &[Stack], facts: &Facts) -> String {
    let blueprint = plan(powers, stacks, facts).expect("it can be planned");
    let steps = describe(&blueprint, facts);
    let steps: Vec<String> = steps.iter().map(|step| format!("{:<8} {}", step.by, step.does)).collect();
    let walls = assess(powers, &facts.engine, &facts.image.id, Can { enter_networks: true });
    let walls: Vec<String> =
        walls.walls.iter().map(|holding| format!("{:<15} {:?}", holding.wall.name(), holding.held)).collect();
    format!("{}\n\n{}", steps.join("\n"), walls.join("\n"))
}

#[test]
fn an_ordinary_user_over_layers() {
    insta::assert_snapshot!(text(&powers(), &overlay(), &facts()));
}

#[test]
fn root_over_files_of_its_own() {
    let mut powers = powers();
    powers.files.places.retain(|place| place.access != Access::Write);
    powers.files.places.iter_mut().for_each(|place| place.owner = (0, 0));
    let facts = Facts { caller: (0, 0), work: None, ..facts() };
    let refused = plan(&powers, &overlay(), &facts);
    assert!(matches!(refused, Err(Unusable::Layers { .. })), "with copies it can be done: {refused:?}");
    insta::assert_snapshot!(text(&powers, &copy(), &facts));
}

#[test]
fn root_over_files_of_somebody_s() {
    insta::assert_snapshot!(text(&powers(), &overlay(), &Facts { caller: (0, 0), work: None, ..facts() }));
}

#[test]
fn a_way_out_that_is_read() {
    let gated = Gated { hosts: vec!["example.org".to_owned()], reads: true, ..Gated::default() };
    let powers = Powers { network: Network::Gated(gated), ..powers() };
    let facts = Facts { trust: Some("/run/user/1000/belljar-trust-0123456789abcdef".into()), ..facts() };
    insta::assert_snapshot!(text(&powers, &overlay(), &facts));
}

#[test]
fn the_whole_configuration() {
    let mut value =
        serde_json::to_value(plan(&powers(), &overlay(), &facts()).expect("planned").container).expect("json");
    // Compared where it is made.
    value["HostConfig"]["SecurityOpt"][1] = "seccomp=…".into();
    // Whether they keep their order is up to who else is built.
    value.sort_all_objects();
    insta::assert_snapshot!(serde_json::to_string_pretty(&value).expect("text"));
}

#[test]
fn root_s_own_files_are_not_given_to_be_written() {
    let mut powers = powers();
    powers.files.places.iter_mut().for_each(|place| place.owner = (0, 0));
    let refused = plan(&powers, &copy(), &Facts { caller: (0, 0), ..facts() });
    assert!(matches!(refused, Err(Unusable::Path { .. })), "{refused:?}");
}

#[test]
fn a_runtime_that_the_engine_has_not_is_refused_by_name() {
    let with = |name: &str| {
        let mut powers = powers();
        powers.files.ground = Ground::Image { name: None, runtime: Some(name.to_owned()), pull: false };
        plan(&powers, &overlay(), &facts())
    };
    assert_eq!(with("runsc").expect("it is there").container.host_config.runtime.as_deref(), Some("runsc"));
    assert!(matches!(with("kata"), Err(Unusable::NoRuntime { .. })));
}

#[test]
fn where_the_engine_s_socket_is_nothing_is_mounted_from() {
    for path in ["/var/run/docker.sock", "/var/run", "/var", "/", "/proc", "/dev/shm", "/sys/fs"] {
        let mut powers = powers();
        powers.files.places[0].path = path.into();
        assert!(matches!(plan(&powers, &overlay(), &facts()), Err(Unusable::Path { .. })), "{path}");
    }
}

#[test]
fn separators_in_names_are_not_taken_for_ends() {
    for path in ["/srv/a,upperdir=/etc", "/srv/a:/etc", "/srv/a\\,b", "/srv/a\nb"] {
        let mut powers = powers();
        powers.files.places[2].path = path.into();
        let mut stacks = overlay();
        stacks[0].place = path.into();
        assert!(matches!(plan(&powers, &stacks, &facts()), Err(Unusable::Layers { .. })), "{path}");
    }
}

/// All that an engine is told, and nothing else. A new word here is a new power.
const KNOWN: &[&str] = &[
    "AttachStderr", "AttachStdin", "AttachStdout", "Cmd", "Entrypoint", "Env", "Healthcheck", "HostConfig", "Hostname",
    "Image", "Labels", "OpenStdin", "StdinOnce", "Tty", "User", "WorkingDir",
];
const KNOWN_OF_HOST: &[&str] = &[
    "CapDrop", "CgroupnsMode", "Init", "IpcMode", "LogConfig", "MaskedPaths", "Memory", "MemorySwap", "Mounts",
    "NanoCpus", "NetworkMode", "PidsLimit", "ReadonlyPaths", "ReadonlyRootfs", "Runtime", "SecurityOpt", "ShmSize",
    "Tmpfs", "Ulimits",
];

fn any_path() -> impl Strategy<Value = PathBuf> {
    let parts = prop::sample::select(vec![
        "/", "/etc", "/var/run/docker.sock", "/var/run", "/proc/1/root", "/sys", "/dev/mem", "/srv/a", "/srv/b:rw",
        "/srv/c,d", "/home/alice", "/root", "/tmp", "/srv/project", "/run/podman/podman.sock", "/srv/\u{e4}\n",
    ]);
    parts.prop_map(PathBuf::from)
}

fn any_place() -> impl Strategy<Value = Place> {
    let access = prop::sample::select(vec![Access::Read, Access::Layered, Access::Write]);
    let origin = prop::sample::select(vec![Origin::System, Origin::Toolchain, Origin::Workspace, Origin::Asked]);
    let owner = prop::sample::select(vec![(0, 0), (1000, 1000), (1, 0), (0, 1)]);
    (any_path(), access, origin, owner, any::<bool>()).prop_map(|(path, access, origin, owner, folder)| Place {
        path,
        access,
        folder,
        origin,
        owner,
    })
}

prop_compose! {
    fn any_powers()(
        places in prop::collection::vec(any_place(), 0..5),
        hidden in prop::collection::vec((any_path(), any::<bool>()), 0..3),
        home in any_path(),
        directory in any_path(),
        program in ".{0,20}",
        words in prop::collection::vec(".{0,20}", 0..4),
        environment in prop::collection::vec(("[A-Z=\\-]{0,8}", ".{0,12}"), 0..4),
        runtime in prop::option::of("[a-z]{1,6}"),
        terminal in any::<bool>(),
        gated in any::<bool>(),
        (memory, processes, disk, millicpus) in (any::<u64>(), any::<u64>(), any::<u64>(), prop::option::of(any::<u32>())),
    ) -> Powers {
        let Powers { limits, .. } = powers();
        Powers {
            command: Command {
                program: program.into(),
                arguments: words.into_iter().map(Into::into).collect(),
                directory,
                terminal,
            },
            files: Files {
                ground: Ground::Image { name: None, runtime, pull: true },
                places,
                links: vec![("/x".into(), "/y".into())],
                hidden,
                home,
                user_name: "alice".to_owned(),
            },
            environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            network: if gated { Network::Gated(Gated::default()) } else { Network::Closed },
            limits: Limits { memory, processes, disk, millicpus, ..limits },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_grant_can_ask_for_what_breaks_isolation(
        powers in any_powers(),
        caller in prop::sample::select(vec![(0u32, 0u32), (1000, 1000), (1000, 0)]),
        rootless in any::<bool>(),
        owner in prop::sample::select(vec![0u32, 1000, 1001]),
    ) {
        let mut facts = facts();
        facts.caller = caller;
        facts.engine.rootless = rootless;
        facts.engine.owner = owner;
        let stack = |place: &Place| Stack {
            place: place.path.clone(),
            kept: Kept::Overlay { earlier: Vec::new(), layer: "/home/alice/.local/state/belljar/layers/b/0".into() },
            begun: 0,
        };
        let stacks: Vec<Stack> = powers.files.places.iter().map(stack).collect();
        let Ok(blueprint) = plan(&powers, &stacks, &facts) else { return Ok(()) };
        let told = serde_json::to_value(&blueprint.container).expect("it can be told");
        let keys = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
        };
        for key in keys(&told) {
            prop_assert!(KNOWN.contains(&key.as_str()), "{}", key);
        }
        let host = &told["HostConfig"];
        for key in keys(host) {
            prop_assert!(KNOWN_OF_HOST.contains(&key.as_str()), "{}", key);
        }
        prop_assert_eq!(&host["ReadonlyRootfs"], true);
        prop_assert_eq!(&host["Init"], true);
        prop_assert_eq!(&host["CapDrop"], &serde_json::json!(["ALL"]));
        prop_assert_eq!(&host["IpcMode"], "private");
        prop_assert_eq!(&host["CgroupnsMode"], "private");
        prop_assert_eq!(&host["Memory"], &host["MemorySwap"]);
        let network = host["NetworkMode"].as_str().unwrap_or_default();
        prop_assert!(network == "none" || network == "container:belljar-net-0123456789abcdef", "{}", network);
        let security = host["SecurityOpt"].as_array().expect("a list");
        prop_assert_eq!(security.len(), 2);
        prop_assert_eq!(&security[0], "no-new-privileges:true");
        let begin = "seccomp={\"defaultAction\":\"SCMP_ACT_ERRNO\"";
        let filtered = security[1].as_str().is_some_and(|one| one.starts_with(begin));
        prop_assert!(filtered);
        let user = told["User"].as_str().unwrap_or_default();
        let is_caller = rootless && owner == caller.0 && caller.0 != 0 && user == "0:0";
        prop_assert!(is_caller || !user.split(':').any(|number| number == "0"), "{}", user);
        prop_assert!(told["Image"].as_str().is_some_and(|image| image.starts_with("sha256:")));
        for mount in host["Mounts"].as_array().into_iter().flatten() {
            let target = mount["Target"].as_str().unwrap_or_default();
            // Or a folder within one that is written to, which is held in its place.
            let granted = powers.files.places.iter().find(|place| {
                place.path != std::path::Path::new(target)
                    && place.access == Access::Write
                    && model::paths::is_within(std::path::Path::new(target), &place.path)
                    && matches!(place.origin, Origin::Workspace | Origin::Asked)
            });
            let granted = granted.or_else(|| powers.files.places.iter().find(|place| {
                place.path.to_str() == Some(target) && matches!(place.origin, Origin::Workspace | Origin::Asked)
            }));
            prop_assert!(granted.is_some(), "{} was not granted", target);
            prop_assert!(!["/var/run/docker.sock", "/var/run", "/", "/sys", "/dev/mem"].contains(&target), "{}", target);
            match mount["Type"].as_str() {
                Some("bind") => {
                    prop_assert_eq!(&mount["Source"], &mount["Target"]);
                    prop_assert_eq!(&mount["BindOptions"], &serde_json::json!({"Propagation": "rprivate", "NonRecursive": true}));
                    let within = |place: &Place| model::paths::is_within(std::path::Path::new(target), &place.path);
                    let writable = powers.files.places.iter().any(|place| within(place) && place.access == Access::Write);
                    prop_assert!(writable || mount["ReadOnly"] == true);
                }
                Some("volume") => prop_assert!(mount["Source"].as_str().is_some_and(|name| name.starts_with("belljar-0123456789abcdef-"))),
                other => prop_assert!(false, "{:?}", other),
            }
        }
        for volume in &blueprint.volumes {
            prop_assert_eq!(volume.driver_opts.kind, "overlay");
            prop_assert_eq!(volume.driver_opts.o.matches("upperdir=").count(), 1);
            prop_assert_eq!(volume.driver_opts.o.matches(',').count(), 3);
        }
    }
}
