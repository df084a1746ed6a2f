//! Sandboxes that stay: walls that stand with nothing started, and visitors who start things behind them.
//!
//! Whoever opened one is its host (`desk`): it holds the walls and takes orders at a socket. Whoever wants to run something
//! in it (`visit`) has a grant of its own, and is let in if that is exactly the grant whose walls stand there.

pub mod cell;
pub mod contexts;
pub mod desk;
pub mod visit;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use model::{Accepted, Files, Grant, Limits, Network, Place, Powers};

/// What a visitor is told first: whose walls these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Who the payload is on the host.
    pub owner: Option<(u32, u32)>,
    /// What stands, by name.
    pub walls: Vec<(String, String)>,
    /// Variables with what stands in them for secrets: the gate knows these and no others.
    pub stand_ins: Vec<(String, String)>,
}

/// What must be the same for a command to be under the walls that its grant demands. Time and output are held by whoever
/// visits, command and variables are its own.
fn walls_of(grant: &Grant) -> Vec<(String, String)> {
    let Powers { command: _, files, environment: _, network, limits } = grant.powers();
    let Limits {
        wall_time: _,
        millicpus,
        cpu_time,
        memory,
        processes,
        disk,
        inodes,
        open_files,
        // As much as the disk, and what is in files that the caller writes to: a visitor's are behind pipes.
        largest_file: _,
        output: _,
    } = limits;
    let Accepted { minimum, partly, missing } = grant.accepted();
    let network = match network {
        Network::Closed => Network::Closed,
        Network::Gated(gated) => {
            let mut gated = gated.clone();
            // New for each grant; the sandbox has those of the first.
            gated.secrets.iter_mut().for_each(|secret| secret.stand_in.clear());
            Network::Gated(gated)
        }
    };
    let limits = (millicpus, cpu_time, memory, processes, disk, inodes, open_files);
    [
        ("files", letters_of(files)),
        ("network", format!("{network:?}").into_bytes()),
        ("limits", format!("{limits:?}").into_bytes()),
        ("gaps", format!("{minimum:?} {partly:?} {missing:?}").into_bytes()),
    ]
    .map(|(name, what)| (name.to_owned(), digest(&what)))
    .to_vec()
}

/// All of it, and no other list has the same: no path has a zero byte in it. There are dozens of places, and to have each spelled for
/// people to read was a fiftieth of a visit.
fn letters_of(files: &Files) -> Vec<u8> {
    let Files { ground, places, links, hidden, home, user_name } = files;
    let mut letters = format!("{ground:?} {} {} {}", places.len(), links.len(), hidden.len()).into_bytes();
    let word = |letters: &mut Vec<u8>, text: &OsStr| {
        letters.push(0);
        letters.extend_from_slice(text.as_bytes());
        letters.push(0);
    };
    word(&mut letters, user_name.as_ref());
    word(&mut letters, home.as_os_str());
    for Place { path, access, folder, origin, owner: (user, group) } in places {
        word(&mut letters, path.as_os_str());
        letters.extend([*access as u8, u8::from(*folder), *origin as u8]);
        letters.extend(user.to_le_bytes().into_iter().chain(group.to_le_bytes()));
    }
    for (link, target) in links {
        word(&mut letters, link.as_os_str());
        word(&mut letters, target.as_os_str());
    }
    for (path, folder) in hidden {
        word(&mut letters, path.as_os_str());
        letters.push(u8::from(*folder));
    }
    letters
}

fn stand_ins(grant: &Grant) -> Vec<(String, String)> {
    match &grant.powers().network {
        Network::Closed => Vec::new(),
        Network::Gated(gated) => {
            gated.secrets.iter().map(|secret| (secret.variable.clone(), secret.stand_in.clone())).collect()
        }
    }
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

impl Greeting {
    pub fn of(grant: &Grant, owner: Option<(u32, u32)>) -> Greeting {
        Greeting { owner, walls: walls_of(grant), stand_ins: stand_ins(grant) }
    }

    /// Which walls are others than this grant demands.
    pub fn differs(&self, grant: &Grant) -> Vec<String> {
        let demanded = walls_of(grant);
        let differs = |(name, digest): &&(String, String)| {
            !self.walls.iter().any(|(stands, its)| (stands, its) == (name, digest))
        };
        demanded.iter().filter(differs).map(|(name, _)| name.clone()).collect()
    }

    fn encode(&self) -> Vec<u8> {
        let mut text = String::new();
        if let Some((user, group)) = self.owner {
            text.push_str(&format!("owner\t{user}\t{group}\n"));
        }
        for (kind, pairs) in [("wall", &self.walls), ("stand-in", &self.stand_ins)] {
            pairs.iter().for_each(|(name, value)| text.push_str(&format!("{kind}\t{name}\t{value}\n")));
        }
        text.into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Greeting> {
        let mut greeting = Greeting { owner: None, walls: Vec::new(), stand_ins: Vec::new() };
        for line in std::str::from_utf8(bytes).ok()?.lines() {
            let mut words = line.split('\t');
            match (words.next()?, words.next()?, words.next()?, words.next()) {
                ("owner", user, group, None) => greeting.owner = Some((user.parse().ok()?, group.parse().ok()?)),
                ("wall", name, value, None) => greeting.walls.push((name.to_owned(), value.to_owned())),
                ("stand-in", name, value, None) => greeting.stand_ins.push((name.to_owned(), value.to_owned())),
                _ => return None,
            }
        }
        Some(greeting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_part_of_the_files_counts() {
        use model::{Access, Ground, Origin};
        let place = |path: &str, owner| Place {
            path: path.into(),
            access: Access::Read,
            folder: true,
            origin: Origin::System,
            owner,
        };
        let plain = Files {
            ground: Ground::Host,
            places: vec![place("/usr", (0, 0)), place("/w", (1, 1))],
            links: vec![("/bin".into(), "usr/bin".into())],
            hidden: vec![("/w/.env".into(), false)],
            home: "/home/a".into(),
            user_name: "a".to_owned(),
        };
        let other = |change: fn(&mut Files)| {
            let mut files = plain.clone();
            change(&mut files);
            files
        };
        let all = [
            plain.clone(),
            other(|files| files.places[1].path = "/x".into()),
            other(|files| files.places[1].access = Access::Write),
            other(|files| files.places[1].access = Access::Layered),
            other(|files| files.places[1].folder = false),
            other(|files| files.places[1].origin = Origin::Asked),
            other(|files| files.places[1].owner = (1, 2)),
            other(|files| files.places[1].owner = (2, 1)),
            other(|files| drop(files.places.pop())),
            other(|files| files.places.swap(0, 1)),
            other(|files| files.links[0].1 = "usr/sbin".into()),
            other(|files| files.links[0].0 = "/sbin".into()),
            other(|files| files.links.clear()),
            other(|files| files.hidden[0].1 = true),
            other(|files| files.hidden[0].0 = "/w/.enw".into()),
            other(|files| files.hidden.clear()),
            other(|files| files.home = "/home/b".into()),
            other(|files| files.user_name = "b".to_owned()),
            other(|files| files.ground = Ground::Module { interpreter: None }),
        ];
        let different: std::collections::HashSet<Vec<u8>> = all.iter().map(letters_of).collect();
        assert_eq!(different.len(), all.len());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Greeting::decode(&bytes);
        }

        #[test]
        fn a_greeting_survives(owner in any::<Option<(u32, u32)>>(), walls in proptest::collection::vec(("[a-z]{1,8}", "[0-9a-f]{1,64}"), 0..5),
            stand_ins in proptest::collection::vec(("[A-Z_]{1,8}", "[!-~]{1,20}"), 0..3)) {
            let greeting = Greeting { owner, walls, stand_ins };
            prop_assert_eq!(Greeting::decode(&greeting.encode()), Some(greeting));
        }
    }
}
