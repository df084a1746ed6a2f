//! Names of users, as the machine's list of them has them, and numbers, as the kernel knows them.

use std::path::PathBuf;

use model::Trouble;

pub struct User {
    pub name: String,
    pub id: u32,
    group: u32,
    pub home: PathBuf,
}

struct Group {
    name: String,
    id: u32,
    members: Vec<String>,
}

pub struct Users {
    users: Vec<User>,
    groups: Vec<Group>,
}

/// Numbers of those who may answer.
pub struct Approvers(Vec<u32>);

/// The user whose files we make.
pub fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Users {
    pub fn read() -> Result<Users, Trouble> {
        Ok(Users::of(&list("/etc/passwd")?, &list("/etc/group")?))
    }

    /// Lines that are none are nobody.
    fn of(users: &str, groups: &str) -> Users {
        let user = |line: &str| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
            let id = fields.nth(1)?.parse().ok()?;
            let group = fields.next()?.parse().ok()?;
            let home = fields.nth(1)?.into();
            Some(User { name, id, group, home })
        };
        let group = |line: &str| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
            let id = fields.nth(1)?.parse().ok()?;
            let members = fields.next()?.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            Some(Group { name, id, members })
        };
        Users { users: users.lines().filter_map(user).collect(), groups: groups.lines().filter_map(group).collect() }
    }

    pub fn named(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.name == name)
    }

    /// Its name, or its number where it has none.
    pub fn name(&self, id: u32) -> String {
        self.users.iter().find(|user| user.id == id).map_or_else(|| id.to_string(), |user| user.name.clone())
    }

    pub fn is_known(&self, id: u32) -> bool {
        self.users.iter().any(|user| user.id == id)
    }

    /// Whether the lists have a user in a group.
    pub fn is_in(&self, id: u32, group: u32) -> bool {
        let listed = self.groups.iter().filter(|known| known.id == group).flat_map(|known| &known.members);
        let listed: Vec<&String> = listed.collect();
        self.users.iter().any(|user| user.id == id && (user.group == group || listed.contains(&&user.name)))
    }

    pub fn group_name(&self, id: u32) -> String {
        self.groups.iter().find(|group| group.id == id).map_or_else(|| id.to_string(), |group| group.name.clone())
    }

    /// Those of these names who are users here; without names, the asker and root. A name is a user's, a number, or
    /// `group:NAME` for all who are in it.
    pub fn approvers(&self, names: &[String]) -> Approvers {
        let mut ids: Vec<u32> = match names {
            [] => vec![us(), 0],
            names => names.iter().flat_map(|name| self.meant(name)).collect(),
        };
        ids.sort();
        ids.dedup();
        Approvers(ids)
    }
}

impl Users {
    fn meant(&self, name: &str) -> Vec<u32> {
        if let Some(user) = self.named(name) {
            return vec![user.id];
        }
        match name.strip_prefix("group:") {
            Some(name) => {
                let group = self.groups.iter().find(|group| group.name == name);
                let ids = self.users.iter().map(|user| user.id);
                group.map_or_else(Vec::new, |group| ids.filter(|id| self.is_in(*id, group.id)).collect())
            }
            None => name.parse().into_iter().collect(),
        }
    }
}

/// A machine without a list has users all the same; only their names are not known.
fn list(path: &str) -> Result<String, Trouble> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Trouble {
            message: format!("cannot read {path}, which says who may answer: {error}"),
            fix: "make it readable".to_owned(),
        }),
    }
}

impl Approvers {
    /// Those who are neither root nor the asker: they reach nothing of the asker's own.
    pub fn others(&self) -> impl Iterator<Item = u32> {
        let us = us();
        self.0.iter().copied().filter(move |id| *id != us && *id != 0)
    }

    pub fn contains(&self, id: u32) -> bool {
        self.0.contains(&id)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self, users: &Users) -> Vec<String> {
        self.0.iter().map(|id| users.name(*id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_by_number() {
        let users = Users::of(
            "root:x:0:0:root:/root:/bin/sh\n\n:x:5:5::/:\nno line\nann:x:1000:1000:Ann,,:/home/ann:/bin/sh\n",
            "",
        );
        assert_eq!(users.named("ann").map(|user| (user.id, user.home.clone())), Some((1000, "/home/ann".into())));
        assert_eq!(users.name(1000), "ann");
        assert_eq!(users.name(5), "5");
    }

    #[test]
    fn whoever_is_no_user_here_may_not_answer() {
        let users = Users::of("root:x:0:0:root:/root:/bin/sh\n", "");
        assert!(users.approvers(&["nobody-here".to_owned()]).is_empty());
        assert!(users.approvers(&["nobody-here".to_owned(), "root".to_owned()]).contains(0));
        assert!(users.approvers(&[]).contains(us()));
    }

    #[test]
    fn a_group_and_a_number_stand_for_users() {
        let users = Users::of(
            "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:\nbob:x:1001:1001::/home/bob:\ncem:x:1002:50::/:\n",
            "ann:x:1000:\nsecurity:x:50:ann,nobody-here\nno line\n",
        );
        let named =
            |names: &[&str]| users.approvers(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).0;
        assert_eq!(named(&["group:security"]), [1000, 1002]);
        assert_eq!(named(&["1001", "ann", "4000000000"]), [1000, 1001, 4_000_000_000]);
        assert_eq!(named(&["group:none", "group:", "-1", "group:1000"]), Vec::<u32>::new());
        assert!(users.is_in(1002, 50) && !users.is_in(1001, 50));
    }
}
