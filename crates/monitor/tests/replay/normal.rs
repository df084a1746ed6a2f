//! What coding agents do all day. Made up after what such work looks like in samples of real runs.

use model::Overrun;

use crate::scene::{Scene, Second, Usage, called, dice};

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;

pub fn scenes() -> Vec<Scene> {
    vec![
        large_build(),
        link_time_optimisation(),
        quiet_tests(),
        chatty_tests(),
        npm_install(),
        failing_build(),
        hanging_test(),
        a_day(),
        from_reading_to_building(),
        new_and_heavy(),
        several_at_once(),
        stubborn(),
        computing(),
        uploads(),
        container_tool(),
    ]
}

/// A quarter of an hour on all of eight processors.
fn compiling(second: u32) -> Second {
    Second {
        load: 7.2 + 0.8 * dice(second),
        io: (2.0 * dice(second + 1) * MIB as f64) as u64 + 300 * KIB,
        output: if second.is_multiple_of(2) { 60 } else { 0 },
        programs: u32::from(dice(second + 2) < 0.7),
        processes: 20,
        denials: 0,
    }
}

fn large_build() -> Scene {
    let mut scene = Scene::new("`cargo build` of a large workspace, 15 min on all 8 processors", 8.0);
    scene.long("cargo build", 900, compiling);
    scene
}

fn link_time_optimisation() -> Scene {
    let mut scene = Scene::new("a release with link-time optimisation: 8 min without a word or a new program", 8.0);
    scene.long("cargo build --release", 780, |second| match second {
        0..=300 => compiling(second),
        // One crate after the other is optimised in memory, and written at the end.
        301..=740 => Second { load: 7.5, io: 20 * KIB, processes: 12, ..Second::default() },
        _ => Second { load: 1.0, io: 40 * MIB, processes: 3, ..Second::default() },
    });
    scene
}

fn quiet_tests() -> Scene {
    let mut scene = Scene::new("property tests, 12 min on all processors, a line every 4 s", 4.0);
    scene.long("cargo test", 720, |second| Second {
        load: 3.9,
        io: 2 * KIB,
        output: if second.is_multiple_of(4) { 70 } else { 0 },
        processes: 2,
        ..Second::default()
    });
    scene
}

fn chatty_tests() -> Scene {
    let mut scene = Scene::new("`pytest`, 30 times in two hours", 4.0);
    for run in 0..30 {
        scene.long("python3 -m pytest", 60, |second| Second {
            load: 0.9,
            io: 200 * KIB,
            output: 80,
            programs: u32::from(dice(run * 100 + second) < 0.2),
            ..Second::default()
        });
        scene.pause(180.0);
    }
    scene
}

fn npm_install() -> Scene {
    let mut scene = Scene::new("`npm install`, then `npm run build`, ten times", 4.0);
    for _ in 0..10 {
        scene.long("npm install", 90, |second| Second {
            load: 1.2,
            io: 6 * MIB,
            output: if second.is_multiple_of(10) { 100 } else { 0 },
            programs: u32::from(second.is_multiple_of(5)),
            processes: 12,
            denials: u64::from(second < 3),
        });
        scene.long("npm run build", 40, |second| Second {
            load: 2.5,
            io: 3 * MIB,
            output: if second.is_multiple_of(8) { 200 } else { 0 },
            processes: 12,
            ..Second::default()
        });
        scene.pause(240.0);
    }
    scene
}

fn failing_build() -> Scene {
    let mut scene = Scene::new("a build that fails and is tried again, 10 times in 20 min", 8.0);
    for _ in 0..10 {
        scene.long("make -j8", 90, compiling).pause(30.0);
    }
    scene
}

fn hanging_test() -> Scene {
    let mut scene = Scene::new("a test that hangs: four time-outs in an hour", 4.0);
    for _ in 0..4 {
        let overrun = Some(Overrun::WallTime);
        scene.short(Usage { duration: 300.0, processor: 2.0, overrun, ..Usage::default() }).pause(400.0);
    }
    scene
}

/// One of the many small things.
fn errand(number: u32) -> Usage {
    let seconds = 0.02 + 3.0 * dice(number).powi(4);
    // What node and python try and do without.
    let denials = match number % 7 {
        0 => called(&["io_uring_setup"]),
        1 => called(&["io_uring_setup", "perf_event_open", "unshare"]),
        _ => Vec::new(),
    };
    Usage { duration: seconds, processor: seconds * 0.8, denials, ..Usage::default() }
}

fn a_day() -> Scene {
    let mut scene = Scene::new("eight hours of edits, searches, checks and tests", 8.0);
    let mut number = 0;
    while scene.now() < 8.0 * 3600.0 {
        number += 1;
        match number % 25 {
            0 => scene.long("cargo test", 70 + (200.0 * dice(number)) as u32, compiling),
            7 | 15 => scene.long("cargo check", 12, compiling),
            // A refusal now and then.
            20 if number % 3 == 0 => scene.refused("git.push", "git push"),
            _ => scene.short(errand(number)),
        };
        scene.pause(4.0 + 60.0 * dice(number + 7));
    }
    scene
}

fn from_reading_to_building() -> Scene {
    let mut scene = Scene::new("200 small commands, then 20 builds of 10 min on all processors", 8.0);
    for number in 0..200 {
        scene.short(errand(number)).pause(8.0);
    }
    for _ in 0..20 {
        scene.long("cargo build --release", 600, compiling).pause(300.0);
    }
    scene
}

fn new_and_heavy() -> Scene {
    let mut scene = Scene::new("a new agent whose first runs are 25 min builds on 16 processors", 16.0);
    for _ in 0..4 {
        scene.long("bazel build //...", 1500, |second| Second { load: 15.0, ..compiling(second) }).pause(120.0);
    }
    scene
}

fn several_at_once() -> Scene {
    let mut scene = Scene::new("twelve helpers at once: 120 small commands a minute, for half an hour", 8.0);
    for number in 0..100 {
        scene.short(errand(number)).pause(30.0);
    }
    for number in 0..3600 {
        scene.short(Usage { duration: 0.05, processor: 0.04, ..errand(number) }).pause(0.45);
    }
    scene
}

fn stubborn() -> Scene {
    let mut scene = Scene::new("a refused command that is tried in eight wordings, and given up", 4.0);
    for number in 0..60 {
        scene.short(errand(number)).pause(20.0);
    }
    for about in ["git push", "git push origin", "git push -u origin main", "sh -c 'git push'"].repeat(2) {
        scene.refused("git.push", about).pause(12.0);
    }
    scene
}

fn computing() -> Scene {
    let mut scene = Scene::new("a computation that is silent for 15 min on one processor", 4.0);
    scene.long("python3 simulate.py", 900, |_| Second { load: 1.0, ..Second::default() });
    scene
}

fn uploads() -> Scene {
    let mut scene = Scene::new("a day with uploads: 2 MiB now and then, 300 MiB twice", 4.0);
    for number in 0..120 {
        let egress = if number % 50 == 40 { 300 * MIB } else { (4.0 * dice(number) * MIB as f64) as u64 };
        scene.short(Usage { egress, ..errand(number) }).pause(200.0);
    }
    scene
}

fn container_tool() -> Scene {
    let mut scene = Scene::new("a build tool that tries a sandbox of its own in every run, 100 times", 4.0);
    let tried = ["unshare", "mount", "pivot_root", "setns", "clone", "keyctl", "perf_event_open", "io_uring_setup"];
    for _ in 0..100 {
        scene.short(Usage { duration: 5.0, processor: 4.0, denials: called(&tried), ..Usage::default() }).pause(20.0);
    }
    scene
}
