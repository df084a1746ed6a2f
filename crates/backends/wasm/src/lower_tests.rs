//! What the worker is told, without a host: the list is the module's whole world.

use std::ffi::OsString;
use std::time::Duration;

use model::{Access, Command, Files, Ground, Limits, Network, Origin, Place, Powers};

use crate::failure::Failure;
use crate::lower::{Code, Lowered, lower};
use crate::worker::Worker;

fn place(path: &str, access: Access, folder: bool) -> Place {
    Place { path: path.into(), access, folder, origin: Origin::Asked, owner: (0, 0) }
}

fn powers(places: Vec<Place>, start: &str) -> Powers {
    Powers {
        command: Command {
            program: "/srv/project/hello.wasm".into(),
            arguments: ["hello.wasm", "--memory", "1"].map(Into::into).to_vec(),
            directory: start.into(),
            terminal: false,
        },
        files: Files {
            ground: Ground::Module { interpreter: None },
            places,
            links: Vec::new(),
            hidden: Vec::new(),
            home: "/home/alice".into(),
            user_name: "alice".to_owned(),
        },
        environment: vec![("LD_PRELOAD".into(), "x".into())],
        network: Network::Closed,
        limits: Limits {
            wall_time: Some(Duration::from_secs(1)),
            millicpus: None,
            cpu_time: None,
            memory: 1 << 30,
            processes: 16,
            disk: 1 << 20,
            inodes: 64,
            open_files: 64,
            largest_file: 1 << 20,
            output: None,
        },
    }
}

fn lowered(powers: &Powers) -> Result<Lowered, Failure> {
    let worker = Worker { place: place("/opt/belljar-wasm", Access::Read, false), identity: String::new() };
    lower(powers, &worker, Code::Written("/srv/project/hello.wasm".into()), None)
}

fn told(powers: &Powers) -> Vec<String> {
    let words = lowered(powers).expect("it can be said").command.arguments;
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

fn has(words: &[String], wanted: &[&str]) -> bool {
    words.windows(wanted.len()).any(|part| part == wanted)
}

#[test]
fn folders_keep_their_names_and_rights() {
    let places = vec![
        place("/srv/library", Access::Read, true),
        place("/srv/project", Access::Layered, true),
        place("/srv/project/vendor", Access::Read, true),
    ];
    let words = told(&powers(places, "/srv/project/vendor"));
    assert!(has(&words, &["--read", "/srv/library", "/srv/library"]));
    assert!(has(&words, &["--write", "/srv/project", "/srv/project"]));
    assert!(has(&words, &["--read", "/srv/project/vendor", "."]), "where it starts has the rights of the innermost");
    assert!(has(&words, &["--scratch", "/dev/shm/tmp", "/tmp"]));
    assert!(has(&words, &["--scratch", "/dev/shm/home", "/home/alice"]));
    assert!(!words.contains(&"--network".to_owned()));
    let end = words.iter().position(|word| word == "--").expect("words have an end");
    assert_eq!(words[end + 1..], ["hello.wasm", "--memory", "1"]);
}

#[test]
fn the_root_of_the_jar_is_never_opened() {
    for start in ["/", "/srv", "/home"] {
        let words = told(&powers(vec![place("/srv/project", Access::Write, true)], start));
        assert!(!has(&words, &["."]), "{start}: {words:?}");
        assert!(!has(&words, &["--read", "/"]) && !has(&words, &["--write", "/"]));
    }
}

#[test]
fn a_home_and_a_folder_for_temporary_files_can_be_where_it_starts() {
    let words = told(&powers(Vec::new(), "/home/alice"));
    assert!(has(&words, &["--scratch", "/dev/shm/home", "."]));
}

#[test]
fn a_home_that_is_granted_is_the_real_one() {
    let words = told(&powers(vec![place("/home", Access::Read, true)], "/home/alice"));
    assert!(!words.contains(&"/dev/shm/home".to_owned()));
}

#[test]
fn single_files_are_given_by_their_folder_if_nothing_else_is_in_it() {
    let file = |path: &str, access| place(path, access, false);
    let words = told(&powers(vec![file("/data/notes.txt", Access::Read)], "/tmp"));
    assert!(has(&words, &["--read", "/data", "/data"]));
    let both = vec![file("/data/in.txt", Access::Read), file("/data/out.txt", Access::Write)];
    let words = told(&powers(both, "/tmp"));
    assert!(has(&words, &["--write", "/data", "/data"]) && !has(&words, &["--read", "/data", "/data"]), "{words:?}");
    assert!(
        lowered(&powers(vec![place("/data", Access::Read, true), file("/data/notes.txt", Access::Read)], "/tmp"))
            .is_ok()
    );
}

#[test]
fn a_single_file_beside_something_else_is_refused_by_name() {
    let file = |path: &str| place(path, Access::Read, false);
    for path in ["/etc/passwd", "/notes.txt", "/tmp/x", "/home/alice/notes.txt", "/proc/self/status"] {
        let refused = lowered(&powers(vec![file(path)], "/srv"));
        assert!(matches!(refused, Err(Failure::Setup(failure)) if failure.message.contains(path)), "{path}");
    }
    let beside = vec![file("/data/notes.txt"), place("/data/library", Access::Read, true)];
    assert!(matches!(lowered(&powers(beside, "/tmp")), Err(Failure::Setup(_))));
}

#[test]
fn no_variable_speaks_to_the_worker() {
    let lowered = lowered(&powers(Vec::new(), "/tmp")).expect("it can be said");
    assert!(lowered.environment.iter().all(|(name, _)| name.as_encoded_bytes().starts_with(b"+")));
}

#[test]
fn what_is_no_text_is_refused_by_name() {
    use std::os::unix::ffi::OsStringExt;
    let mut powers = powers(Vec::new(), "/tmp");
    powers.environment.push(("ODD".into(), OsString::from_vec(vec![0xff])));
    assert!(matches!(lowered(&powers), Err(Failure::Setup(failure)) if failure.message.contains("ODD")));
}
