//! Trees as hostile code leaves them, and what must outlive their removal.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;

use belljar_workspace::remove::{self, Unremoved};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::mount::{MountFlags, mount};
use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

/// A folder of its own for each test: a tree to remove, and things outside of it that nobody may touch.
struct Place(PathBuf);

impl Place {
    fn make(name: &str) -> Place {
        Place::make_in(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    /// For trees that a disk takes long to make.
    fn make_in_memory(name: &str) -> Place {
        Place::make_in(Path::new("/dev/shm"), name)
    }

    fn make_in(folder: &Path, name: &str) -> Place {
        let place = Place(folder.join(format!("{name}-{}", std::process::id())));
        fs::create_dir_all(place.tree()).expect("a tree");
        fs::create_dir(place.outside()).expect("a folder outside");
        fs::set_permissions(place.outside(), fs::Permissions::from_mode(0o750)).expect("a mode");
        fs::write(place.outside().join("kept"), "precious").expect("a file outside");
        place
    }

    fn tree(&self) -> PathBuf {
        self.0.join("tree")
    }

    fn outside(&self) -> PathBuf {
        self.0.join("outside")
    }

    fn remove(&self) -> io::Result<()> {
        remove::tree(File::open(&self.0).expect("the place").as_fd(), OsStr::new("tree"))
    }

    fn assert_removed(&self) {
        self.remove().expect("removed");
        assert!(fs::symlink_metadata(self.tree()).is_err(), "the tree is still there");
        self.assert_unharmed();
    }

    fn assert_unharmed(&self) {
        assert_eq!(fs::read(self.outside().join("kept")).expect("a file outside"), b"precious");
        let mode = fs::metadata(self.outside()).expect("a folder outside").permissions().mode();
        assert_eq!(mode & 0o7777, 0o750, "the mode of the folder outside");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.0).expect("only what was outside is left");
        }
    }
}

/// Root may do to files what no mode allows. Without its capabilities it is a user like any other.
fn as_ordinary_user(act: impl FnOnce() + Send) {
    let act = || {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, sets).expect("capabilities given up");
        act();
    };
    std::thread::scope(|scope| scope.spawn(act).join()).expect("done as an ordinary user");
}

/// As root, if we are, and as an ordinary user.
fn as_either(name: &str, make: impl Fn(&Place) + Sync) {
    let place = Place::make(&format!("{name}-root"));
    make(&place);
    place.assert_removed();
    let place = Place::make(&format!("{name}-ordinary"));
    make(&place);
    as_ordinary_user(|| place.assert_removed());
}

fn close(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o000)).expect("a mode");
}

/// Folders in folders, made by descriptors: a path to the last of them would be too long.
fn dig(top: &Path, depth: usize, name: &OsStr) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = rustix::fs::open(top, flags, Mode::empty()).expect("the top");
    for _ in 0..depth {
        rustix::fs::mkdirat(&folder, name, Mode::RWXU).expect("a folder");
        folder = rustix::fs::openat(&folder, name, flags, Mode::empty()).expect("it is there");
    }
    folder
}

#[test]
fn a_tree_of_every_kind_of_file_is_removed() {
    as_either("kinds", |place| {
        let folder = place.tree().join("a/b");
        fs::create_dir_all(&folder).expect("folders");
        fs::create_dir(folder.join("empty")).expect("a folder");
        fs::write(folder.join("file"), "x").expect("a file");
        fs::hard_link(folder.join("file"), folder.join("twin")).expect("a second name");
        rustix::fs::mknodat(CWD, folder.join("pipe"), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        rustix::fs::mknodat(CWD, folder.join("whiteout"), FileType::CharacterDevice, Mode::empty(), 0)
            .expect("a whiteout");
        symlink("nowhere", folder.join("dangling")).expect("a link");
        symlink(".", folder.join("loop")).expect("a link");
        // By a relative path: those of sockets are short.
        let bound = rustix::fs::open(&folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("the folder");
        let path = format!("/proc/self/fd/{}/socket", std::os::fd::AsRawFd::as_raw_fd(&bound));
        drop(UnixListener::bind(path).expect("a socket"));
    });
}

#[test]
fn what_is_not_there_is_removed_already() {
    let place = Place::make("missing");
    fs::remove_dir(place.tree()).expect("empty");
    place.assert_removed();
}

#[test]
fn a_file_or_a_link_in_the_place_of_the_tree_is_removed_itself() {
    as_either("alone", |place| {
        fs::remove_dir(place.tree()).expect("empty");
        symlink(place.outside(), place.tree()).expect("a link");
    });
    as_either("alone-file", |place| {
        fs::remove_dir(place.tree()).expect("empty");
        fs::write(place.tree(), "x").expect("a file");
    });
}

#[test]
fn a_link_out_of_the_tree_is_not_followed() {
    as_either("links", |place| {
        let folder = place.tree().join("a");
        fs::create_dir(&folder).expect("a folder");
        symlink(place.outside(), folder.join("out")).expect("a link");
        symlink("../../outside", folder.join("relative")).expect("a link");
        symlink(place.outside().join("kept"), folder.join("file")).expect("a link");
        fs::hard_link(place.outside().join("kept"), folder.join("hard")).expect("a second name");
    });
}

#[test]
fn closed_folders_are_no_hindrance() {
    as_either("closed", |place| {
        for (name, mode) in [("none", 0o000), ("read", 0o400), ("search", 0o100), ("write", 0o200), ("others", 0o077)] {
            let folder = place.tree().join(name).join("inner");
            fs::create_dir_all(&folder).expect("folders");
            fs::write(folder.join("file"), "x").expect("a file");
            close(&folder.join("file"));
            close(&folder);
            let outer = place.tree().join(name);
            symlink(place.outside(), outer.join("out")).expect("a link");
            fs::set_permissions(outer, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        close(&place.tree());
    });
}

#[test]
fn names_are_any_bytes() {
    as_either("names", |place| {
        for begin in [&b"\xff\xfe"[..], b"-rf", b"\n", b"\x1b[2J", b" ", b"...", "é".as_bytes()] {
            let mut name = begin.to_vec();
            name.resize(255, b'x');
            for name in [begin, &name] {
                let folder = place.tree().join(OsStr::from_bytes(name));
                fs::create_dir(&folder).expect("a folder");
                fs::write(folder.join(OsStr::from_bytes(name)), "x").expect("a file");
            }
        }
    });
}

#[test]
fn a_path_may_be_longer_than_any_call_takes() {
    as_either("long", |place| {
        let deepest = dig(&place.tree(), 200, OsStr::from_bytes(&[b'x'; 255]));
        rustix::fs::symlinkat(place.outside(), &deepest, "out").expect("a link");
    });
}

#[test]
fn a_very_deep_tree_takes_few_descriptors() {
    let place = Place::make_in_memory("belljar-deep");
    let deepest = dig(&place.tree(), 20_000, OsStr::new("d"));
    rustix::fs::symlinkat(place.outside(), &deepest, "out").expect("a link");
    drop(deepest);
    // Each test is a process of its own, so this is nobody else's limit.
    let few = Rlimit { current: Some(72), maximum: Some(72) };
    rustix::process::setrlimit(Resource::Nofile, few).expect("a limit");
    as_ordinary_user(|| place.assert_removed());
}

#[test]
fn deep_folders_that_are_closed_are_moved_all_the_same() {
    as_either("deep-closed", |place| {
        let mut folder = dig(&place.tree(), 40, OsStr::new("d"));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut above = Vec::new();
        for _ in 0..100 {
            for name in ["d", "e"] {
                rustix::fs::mkdirat(&folder, name, Mode::RWXU).expect("a folder");
                let inner = rustix::fs::openat(&folder, name, flags, Mode::empty()).expect("it is there");
                rustix::fs::mkdirat(&inner, "inner", Mode::empty()).expect("a folder");
                above.push(inner);
            }
            folder = above[above.len() - 2].try_clone().expect("a second descriptor");
        }
        for folder in above {
            rustix::fs::fchmod(folder, Mode::empty()).expect("a mode");
        }
    });
}

#[test]
fn a_folder_of_a_hundred_thousand_files_is_removed() {
    let place = Place::make("many");
    let folder = File::open(place.tree()).expect("the tree");
    // Names of a few files: to make as many files takes a disk long, and the folder is no other.
    for number in 0..4 {
        fs::write(place.tree().join(format!("file-{number}")), "x").expect("a file");
    }
    for number in 0..100_000 {
        let file = format!("file-{}", number % 4);
        rustix::fs::linkat(&folder, file, &folder, number.to_string(), AtFlags::empty()).expect("a name");
    }
    place.assert_removed();
}

#[test]
fn the_contents_can_be_removed_alone() {
    for closed in [false, true] {
        let place = Place::make("contents");
        dig(&place.tree(), 100, OsStr::new("d"));
        fs::write(place.tree().join("file"), "x").expect("a file");
        symlink(place.outside(), place.tree().join("out")).expect("a link");
        let folder = rustix::fs::open(place.tree(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("the tree");
        if closed {
            close(&place.tree());
        }
        as_ordinary_user(|| remove::contents(folder.as_fd()).expect("emptied"));
        assert_eq!(fs::read_dir(place.tree()).expect("the folder is left").count(), 0);
        place.assert_unharmed();
    }
}

#[test]
fn two_who_remove_the_same_tree_both_succeed() {
    let place = Place::make("both");
    for number in 0..200 {
        let folder = place.tree().join(format!("{}/{number}", number % 7));
        fs::create_dir_all(&folder).expect("folders");
        fs::write(folder.join("file"), "x").expect("a file");
    }
    dig(&place.tree(), 500, OsStr::new("d"));
    let together = Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                together.wait();
                place.remove().expect("removed by one or the other");
            });
        }
    });
    place.assert_removed();
}

#[test]
fn a_folder_that_turns_into_a_link_and_back_leads_nowhere() {
    let place = Place::make("swap");
    for round in 0..150 {
        let folder = place.tree().join("a/swapped");
        fs::create_dir_all(&folder).expect("folders");
        for number in 0..5 {
            fs::create_dir(folder.join(number.to_string())).expect("a folder");
            fs::write(folder.join(number.to_string()).join("kept"), "worthless").expect("a file");
        }
        // Closed, so that a mode is changed in the midst of it, too.
        close(&folder.join("0"));
        if round % 2 == 0 {
            close(&folder);
        }
        symlink(place.outside(), place.tree().join("a/link")).expect("a link");
        let within = File::open(place.tree().join("a")).expect("a folder");
        let together = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                together.wait();
                for _ in 0..2000 {
                    let swapped = rustix::fs::renameat_with(&within, "swapped", &within, "link", RenameFlags::EXCHANGE);
                    if swapped.is_err() {
                        break;
                    }
                }
            });
            scope.spawn(|| {
                as_ordinary_user(|| {
                    together.wait();
                    place.remove().expect("removed");
                });
            });
        });
        place.assert_removed();
        fs::create_dir(place.tree()).expect("a tree");
    }
}

#[test]
fn a_writer_who_is_still_there_delays_but_does_not_mislead() {
    let place = Place::make("writer");
    let together = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            together.wait();
            for number in 0..2000 {
                let folder = place.tree().join("a/b");
                let made = fs::create_dir_all(&folder)
                    .and_then(|()| symlink(place.outside(), folder.join(number.to_string())));
                if let Err(error) = made {
                    assert_eq!(error.kind(), io::ErrorKind::NotFound, "the other one was faster: {error}");
                }
            }
        });
        together.wait();
        for _ in 0..20 {
            if let Err(error) = place.remove() {
                assert_eq!(error.kind(), io::ErrorKind::ResourceBusy, "{error}");
            }
        }
    });
    place.assert_removed();
}

#[test]
fn only_one_thing_is_removed() {
    let place = Place::make("single");
    let folder = File::open(place.tree()).expect("the tree");
    for name in ["", ".", "..", "../outside", "/", "a/b", "outside/"] {
        let error = remove::tree(folder.as_fd(), OsStr::new(name)).expect_err("not a name");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}: {error}");
    }
    let zero = OsString::from("a\0b");
    assert!(remove::tree(folder.as_fd(), &zero).is_err());
    place.assert_removed();
}

#[test]
fn an_error_names_the_path_and_the_cause_in_one_line() {
    let place = Place::make("errors");
    fs::create_dir(place.tree().join("a\n\x1b[2J")).expect("a folder");
    let folder = File::open(place.tree()).expect("the tree");
    fs::set_permissions(place.tree(), fs::Permissions::from_mode(0o500)).expect("a mode");
    as_ordinary_user(|| {
        let error =
            remove::tree(folder.as_fd(), OsStr::new("a\n\x1b[2J")).expect_err("the folder is not ours to change");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(error.to_string(), r"cannot remove `a\n\u{1b}[2J`: Permission denied (os error 13)");
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Unremoved>()).expect("what was not removed");
        assert_eq!(inner.path, Path::new("a\n\x1b[2J"));
        assert_eq!(inner.source.raw_os_error(), Some(13));
    });
    place.assert_removed();
}

/// Set for the half of the test that runs where it may mount.
const MAY_MOUNT: &str = "REMOVE_TEST_MAY_MOUNT";

#[test]
fn what_is_mounted_in_a_tree_is_not_emptied() {
    if std::env::var_os(MAY_MOUNT).is_none() {
        let status = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount"])
            .arg(std::env::current_exe().expect("this test"))
            .args(["--exact", "what_is_mounted_in_a_tree_is_not_emptied"])
            .env(MAY_MOUNT, "1")
            .status();
        assert!(status.expect("unshare starts").success());
        return;
    }
    let place = Place::make("mounts");
    let mounted = place.tree().join("a/mounted");
    fs::create_dir_all(&mounted).expect("folders");
    mount(c"none", &mounted, c"tmpfs", MountFlags::empty(), None).expect("a mount");
    fs::write(mounted.join("kept"), "precious").expect("a file");
    // The same device as the tree is no better.
    let bound = place.tree().join("a/bound");
    fs::create_dir(&bound).expect("a folder");
    rustix::mount::mount_bind(place.outside(), &bound).expect("a mount");

    let error = place.remove().expect_err("a mount is in the way");
    assert!(error.to_string().starts_with("cannot remove `tree/a/"), "{error}");
    assert!(mounted.join("kept").exists(), "the mount was emptied");
    place.assert_unharmed();

    rustix::mount::unmount(&mounted, rustix::mount::UnmountFlags::empty()).expect("unmounted");
    rustix::mount::unmount(&bound, rustix::mount::UnmountFlags::empty()).expect("unmounted");
    place.assert_removed();
}

#[test]
fn a_folder_is_not_reached_by_a_descriptor_that_is_none() {
    let place = Place::make("no-folder");
    let file = File::open(place.outside().join("kept")).expect("a file");
    assert!(remove::contents(file.as_fd()).is_err());
    assert!(remove::tree(file.as_fd(), OsStr::new("x")).is_err());
    rustix::fs::unlinkat(CWD, place.tree(), AtFlags::REMOVEDIR).expect("empty");
    place.assert_removed();
}
