//! Attacks as modules: what of the escape suite WebAssembly can express at all. Each is tried as a plain program first,
//! as the same user, where it must succeed.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use model::Wall;

use crate::modules::{Kind, guest};
use crate::project::{Project, Said};
use crate::{Verdict, Who};

/// What an attack does is a word of `guests/module.rs`.
pub struct ModuleAttack {
    /// `modules/dot_dot`.
    pub id: &'static str,
    pub wall: Wall,
    /// A sentence: what the attacker tries.
    pub about: &'static str,
    /// Bait, besides what every scene has.
    pub prepare: fn(&Scene) -> io::Result<()>,
    /// Flags for belljar, and words for the module.
    pub tries: fn(&Scene) -> (Vec<String>, Vec<String>),
    /// Evidence that it succeeded.
    pub gained: fn(&Scene, &Said) -> bool,
    /// Evidence that it was tried and stopped.
    pub stopped: fn(&Said) -> bool,
}

/// Somebody's project with the attacker in it; a secret and a library beside it.
pub struct Scene {
    pub project: Project,
    pub secret_file: PathBuf,
    pub library: PathBuf,
    /// Of the host's loopback; whoever comes is told the secret.
    port: std::cell::Cell<u16>,
}

pub const SECRET: &str = "bell-under-seven-glasses";
const VARIABLE: &str = "DEPLOY_TOKEN";
const FIRST: &str = "first\n";

impl Scene {
    fn set(who: Who) -> io::Result<Scene> {
        let project = Project::new(who)?;
        for kind in Kind::MODULES {
            project.put(kind.file(), fs::read(guest(kind).map_err(io::Error::other)?)?)?;
        }
        let (secret_file, library) =
            (project.work.with_file_name("secret.txt"), project.work.with_file_name("library"));
        fs::create_dir(&library)?;
        for (path, text) in [(&secret_file, SECRET), (&library.join("first.txt"), FIRST)] {
            fs::write(path, text)?;
            project.give(path)?;
        }
        project.give(&library)?;
        Ok(Scene { project, secret_file, library, port: 0.into() })
    }

    fn first(&self) -> String {
        self.library.join("first.txt").to_string_lossy().into_owned()
    }

    fn first_is_as_it_was(&self) -> bool {
        fs::read_to_string(self.library.join("first.txt")).is_ok_and(|text| text == FIRST)
    }

    fn run(&self, kind: Kind, flags: &[String], words: &[String]) -> io::Result<Said> {
        // Compiled before: that takes its time too, and limits are about what comes then.
        let compiled = self.project.belljar(["run", "-q", "--", kind.file(), "exit", "0"])?;
        if compiled.code != Some(0) {
            return Err(io::Error::other(format!("{compiled:?}")));
        }
        let mut all = vec!["run".to_owned(), "-q".to_owned()];
        all.extend_from_slice(flags);
        all.extend(["--".to_owned(), kind.file().to_owned()]);
        all.extend_from_slice(words);
        self.project.command(all).env(VARIABLE, SECRET).output().map(Said::of)
    }

    /// The same program without any sandbox, as the same user.
    fn bare(&self, words: &[String]) -> io::Result<Said> {
        use std::os::unix::process::CommandExt;
        let program = self.project.work.with_file_name("bare");
        fs::copy(guest(Kind::Machine).map_err(io::Error::other)?, &program)?;
        let mut command = Command::new(program);
        if rustix::process::geteuid().is_root() && self.project.who == Who::Ordinary {
            command.uid(self.project.who.user_id()).gid(self.project.who.user_id());
        }
        command.args(words).current_dir(&self.project.work).env_clear().env(VARIABLE, SECRET).stdin(Stdio::null());
        command.output().map(Said::of)
    }
}

/// With no sandbox: `Broken` is what it must be.
pub fn control(attack: &ModuleAttack, who: Who) -> Verdict {
    judged(attack, who, |scene, _, words| scene.bare(words))
}

/// As a module of one kind, in the sandbox.
pub fn trial(attack: &ModuleAttack, kind: Kind, who: Who) -> Verdict {
    judged(attack, who, |scene, flags, words| scene.run(kind, flags, words))
}

/// The worst of all kinds.
pub fn trials(attack: &ModuleAttack, who: Who) -> Verdict {
    let verdicts = Kind::MODULES.map(|kind| trial(attack, kind, who));
    let held = |verdict: &Verdict| *verdict == Verdict::Held;
    let broken = |verdict: &Verdict| matches!(verdict, Verdict::Broken(_));
    let worst = verdicts.iter().find(|verdict| broken(verdict)).or_else(|| verdicts.iter().find(|one| !held(one)));
    worst.cloned().unwrap_or(Verdict::Held)
}

fn judged(attack: &ModuleAttack, who: Who, run: impl Fn(&Scene, &[String], &[String]) -> io::Result<Said>) -> Verdict {
    let tried = || -> io::Result<Verdict> {
        let scene = Scene::set(who)?;
        (attack.prepare)(&scene)?;
        let (flags, words) = (attack.tries)(&scene);
        let said = run(&scene, &flags, &words)?;
        Ok(match ((attack.gained)(&scene, &said), (attack.stopped)(&said)) {
            (true, _) => Verdict::Broken(format!("{said:?}")),
            (false, true) => Verdict::Held,
            (false, false) => Verdict::Unclear(format!("neither gained nor stopped: {said:?}")),
        })
    };
    tried().unwrap_or_else(|error| Verdict::Unclear(format!("the trial itself failed: {error}")))
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn nothing(_: &Scene) -> io::Result<()> {
    Ok(())
}

fn told_the_secret(_: &Scene, said: &Said) -> bool {
    said.out.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
}

fn kept_from_it(said: &Said) -> bool {
    // Components know no code but 1.
    matches!(said.code, Some(1 | 3)) && said.error.contains("kept from it")
}

fn library_changed(scene: &Scene, _: &Said) -> bool {
    !scene.first_is_as_it_was()
}

fn ended_well(_: &Scene, said: &Said) -> bool {
    said.code == Some(0)
}

/// With the library granted for reading, and the workspace written to directly.
fn with_library(scene: &Scene) -> Vec<String> {
    words(["--read", &scene.library.to_string_lossy(), "--workspace-mode", "direct"])
}

pub const ALL: &[ModuleAttack] = &[
    ModuleAttack {
        id: "modules/dot_dot",
        wall: Wall::Files,
        about: "as a module, read a file beside the workspace by `..`",
        prepare: nothing,
        tries: |_| (Vec::new(), words(["read", "../secret.txt"])),
        gained: told_the_secret,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/absolute",
        wall: Wall::Files,
        about: "as a module, read a file beside the workspace by its whole name",
        prepare: nothing,
        tries: |scene| (Vec::new(), words(["read", &scene.secret_file.to_string_lossy()])),
        gained: told_the_secret,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/root_of_a_process",
        wall: Wall::Files,
        about: "as a module, read a file beside the workspace by `/proc/self/root`",
        prepare: nothing,
        tries: |scene| (Vec::new(), words(["read", &format!("/proc/self/root{}", scene.secret_file.display())])),
        gained: told_the_secret,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/link_out",
        wall: Wall::Files,
        about: "as a module, read through a link in the workspace that leads out of it",
        prepare: |scene| symlink(&scene.secret_file, scene.project.work.join("straight")),
        tries: |_| (Vec::new(), words(["read", "straight"])),
        gained: told_the_secret,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/write_through_a_link",
        wall: Wall::Files,
        about: "as a module, write through a link in the workspace to a file outside it",
        prepare: |scene| symlink(&scene.secret_file, scene.project.work.join("straight")),
        tries: |_| (words(["--workspace-mode", "direct"]), words(["write", "straight", "gone"])),
        gained: |scene, _| fs::read_to_string(&scene.secret_file).is_ok_and(|text| text != SECRET),
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/hidden",
        wall: Wall::Files,
        about: "as a module, read a file of the workspace that is hidden",
        prepare: |scene| scene.project.put("keys/token", SECRET),
        tries: |_| (words(["--hide", "keys/token"]), words(["read", "keys/token"])),
        gained: told_the_secret,
        stopped: |said| said.code == Some(0) || kept_from_it(said),
    },
    ModuleAttack {
        id: "modules/write_what_is_read",
        wall: Wall::Files,
        about: "as a module, write to a file that is granted for reading",
        prepare: nothing,
        tries: |scene| (with_library(scene), words(["append", &scene.first(), "more"])),
        gained: library_changed,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/truncate_what_is_read",
        wall: Wall::Files,
        about: "as a module, truncate a file that is granted for reading",
        prepare: nothing,
        tries: |scene| (with_library(scene), words(["truncate", &scene.first()])),
        gained: library_changed,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/truncate_by_opening",
        wall: Wall::Files,
        about: "as a module, truncate a file that is granted for reading by the way it is opened",
        prepare: nothing,
        tries: |scene| (with_library(scene), words(["truncate-by-opening", &scene.first()])),
        gained: library_changed,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/link_what_is_read",
        wall: Wall::Files,
        about: "as a module, give a file that is granted for reading a second name where writing is granted",
        prepare: nothing,
        tries: |scene| (with_library(scene), words(["link", &scene.first(), "second.txt"])),
        gained: |scene, _| scene.project.work.join("second.txt").exists(),
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/move_what_is_read",
        wall: Wall::Files,
        about: "as a module, move a file that is granted for reading to where writing is granted",
        prepare: nothing,
        tries: |scene| (with_library(scene), words(["rename", &scene.first(), "second.txt"])),
        gained: library_changed,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/remove_what_is_read",
        wall: Wall::Files,
        about: "as a module, remove a file that is granted for reading",
        prepare: nothing,
        tries: |scene| (with_library(scene), words(["remove", &scene.first()])),
        gained: library_changed,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/date_what_is_read",
        wall: Wall::Files,
        about: "as a module, change the date of a file that is granted for reading",
        prepare: nothing,
        tries: |scene| (with_library(scene), words(["touch", &scene.first()])),
        gained: |scene, _| {
            let stat = fs::metadata(scene.library.join("first.txt")).and_then(|stat| stat.modified());
            stat.is_ok_and(|time| time == SystemTime::UNIX_EPOCH)
        },
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/variables",
        wall: Wall::Inheritance,
        about: "as a module, read a secret in the caller's environment",
        prepare: nothing,
        tries: |_| (Vec::new(), words(["say"])),
        gained: told_the_secret,
        stopped: |said| said.code == Some(0) && said.out.starts_with(b"words"),
    },
    ModuleAttack {
        id: "modules/variables_of_a_process",
        wall: Wall::Inheritance,
        about: "as a module, read a secret in the environment of the process that runs it",
        prepare: nothing,
        tries: |_| (Vec::new(), words(["read", "/proc/self/environ"])),
        gained: told_the_secret,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/loopback",
        wall: Wall::Network,
        about: "as a module, connect to a server on the host's loopback",
        prepare: |scene| {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            scene.port.set(listener.local_addr()?.port());
            // One is enough: nobody else should come. It ends with this process at the latest.
            std::thread::spawn(move || -> io::Result<()> {
                let (mut caller, _) = listener.accept()?;
                let (mut asked, mut count) = ([0; 256], 0);
                // To its end: whoever hangs up on unread words resets the connection.
                while !asked[..count].ends_with(b"\r\n\r\n") && count < asked.len() {
                    count += caller.read(&mut asked[count..])?;
                }
                caller.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{SECRET}").as_bytes())
            });
            Ok(())
        },
        tries: |scene| (Vec::new(), words(["connect", &format!("127.0.0.1:{}", scene.port.get())])),
        gained: told_the_secret,
        stopped: kept_from_it,
    },
    ModuleAttack {
        id: "modules/memory",
        wall: Wall::Memory,
        about: "as a module, take 512 MiB of --memory 256M",
        prepare: nothing,
        tries: |_| (words(["--memory", "256M"]), words(["take", "512"])),
        gained: ended_well,
        stopped: |said| said.code != Some(0) && said.error.contains("no more memory"),
    },
    ModuleAttack {
        id: "modules/wall_time",
        wall: Wall::WallTime,
        about: "as a module, sleep for 4 seconds of --timeout 1s",
        prepare: nothing,
        tries: |_| (words(["--timeout", "1s"]), words(["sleep", "4"])),
        gained: ended_well,
        stopped: |said| said.code == Some(124),
    },
    ModuleAttack {
        id: "modules/processor_time",
        wall: Wall::CpuTime,
        about: "as a module, compute for 6 seconds of --cpu-time 1s",
        prepare: nothing,
        tries: |_| (words(["--cpu-time", "1s"]), words(["compute-for", "6"])),
        gained: ended_well,
        stopped: |said| said.code == Some(137),
    },
    ModuleAttack {
        id: "modules/output",
        wall: Wall::Disk,
        about: "as a module, say 8 MiB of --output 1M",
        prepare: nothing,
        tries: |_| (words(["--output", "1M"]), words(["say-much", "8"])),
        gained: |_, said| said.out.len() >= 8 << 20,
        stopped: |said| said.code == Some(0) && said.out.len() <= 2 << 20,
    },
];
