//! Random projects and random deeds, and how often they are tried.

use std::fmt::Debug;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use belljar_testkit::deeds::{self, Deed, KINDS};
use belljar_testkit::{Project, Who};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// One thing of a project; which folder it is in, and what it is called, is meant by numbers.
#[derive(Clone, Debug)]
pub struct Seed {
    around: u8,
    name: u8,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    File { contents: Vec<u8>, mode: u32 },
    Folder { mode: u32 },
    Link { target: u8 },
}

pub fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    let what = prop_oneof![
        5 => (contents(), prop::sample::select(vec![0o644, 0o644, 0o755, 0o600, 0o444, 0o664]))
            .prop_map(|(contents, mode)| What::File { contents, mode }),
        3 => prop::sample::select(vec![0o755, 0o755, 0o700, 0o775]).prop_map(|mode| What::Folder { mode }),
        1 => any::<u8>().prop_map(|target| What::Link { target }),
    ];
    let seed = (any::<u8>(), any::<u8>(), what).prop_map(|(around, name, what)| Seed { around, name, what });
    prop::collection::vec(seed, 0..25)
}

pub fn deeds(most: usize) -> impl Strategy<Value = Vec<Deed>> {
    let deed = (prop::sample::select(KINDS), 0..10_000u32, 0..10_000u32, contents());
    let deed = deed.prop_map(|(what, one, other, text)| Deed { what, one, other, text });
    prop::collection::vec(deed, 0..most)
}

fn contents() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec!["one", "two", "three", "{", "}", "", "  x = 1;", "\u{e9}", "end\r"]);
    let lines = prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n").into_bytes());
    prop_oneof![
        3 => lines.clone().prop_map(|mut text| { text.push(b'\n'); text }),
        1 => lines,
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => (any::<u8>(), 1..6000usize).prop_map(|(byte, length)| [&[0u8], vec![byte; length].as_slice()].concat()),
    ]
}

/// A project of these things, older than whatever begins now.
pub fn grown(who: Who, seeds: &[Seed]) -> io::Result<Project> {
    let project = Project::new(who)?;
    grow(&project, &project.work, seeds)?;
    project.let_it_age();
    Ok(project)
}

fn grow(project: &Project, root: &Path, seeds: &[Seed]) -> io::Result<()> {
    let names = deeds::names();
    let name = |number: u8| Path::new(std::ffi::OsStr::from_bytes(&names[usize::from(number) % names.len()]));
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    for seed in seeds {
        let path = folders[usize::from(seed.around) % folders.len()].join(name(seed.name));
        if path.symlink_metadata().is_ok() || path.as_os_str().len() > 3000 {
            continue;
        }
        let mode = match &seed.what {
            What::File { contents, mode } => {
                fs::write(&path, contents)?;
                Some(*mode)
            }
            What::Folder { mode } => {
                fs::create_dir(&path)?;
                folders.push(path.clone());
                Some(*mode)
            }
            What::Link { target } => {
                symlink(name(*target), &path)?;
                None
            }
        };
        project.give(&path)?;
        if let Some(mode) = mode {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// Tries it with so many inputs, always the same ones; `BELLJAR_LAWS_TIMES` many times more, with others.
pub fn holds<T: Debug>(
    cases: u32,
    inputs: impl Strategy<Value = T>,
    law: impl Fn(T) -> Result<(), String>,
) -> Result<(), String> {
    let times = std::env::var("BELLJAR_LAWS_TIMES").ok().and_then(|text| text.parse().ok());
    let config = Config {
        cases: cases * times.unwrap_or(1),
        // Each is a run or more.
        max_shrink_iters: 60,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = match times {
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
        Some(_) => TestRunner::new(config),
    };
    let tried = runner.run(&inputs, |input| law(input).map_err(TestCaseError::fail));
    tried.map_err(|error| match error {
        TestError::Fail(why, input) => format!("{why}\n\nwith {input:#?}"),
        TestError::Abort(why) => why.to_string(),
    })
}
