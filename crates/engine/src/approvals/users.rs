//! Names of users, as the machine's list of them has them, and numbers, as the kernel knows them.

use std::path::PathBuf;

use model::Trouble;

pub struct User {
    pub name: String,
    pub id: u32,
    pub home: PathBuf,
}

pub struct Users(Vec<User>);

/// Numbers of those who may answer.
pub struct Approvers(Vec<u32>);

/// The user whose files we make.
pub fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Users {
    pub fn read() -> Result<Users, Trouble> {
        let list = "/etc/passwd";
        match std::fs::read(list) {
            Ok(bytes) => Ok(Users::of(&String::from_utf8_lossy(&bytes))),
            // A machine without a list has users all the same; only their names are not known.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Users(Vec::new())),
            Err(error) => Err(Trouble {
                message: format!("cannot read {list}, which says who may answer: {error}"),
                fix: "make it readable".to_owned(),
            }),
        }
    }

    /// Lines that are none are nobody.
    fn of(list: &str) -> Users {
        let user = |line: &str| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
            let id = fields.nth(1)?.parse().ok()?;
            let home = fields.nth(2)?.into();
            Some(User { name, id, home })
        };
        Users(list.lines().filter_map(user).collect())
    }

    pub fn named(&self, name: &str) -> Option<&User> {
        self.0.iter().find(|user| user.name == name)
    }

    /// Its name, or its number where it has none.
    pub fn name(&self, id: u32) -> String {
        self.0.iter().find(|user| user.id == id).map_or_else(|| id.to_string(), |user| user.name.clone())
    }

    /// Those of these names who are users here; without names, the asker and root.
    pub fn approvers(&self, names: &[String]) -> Approvers {
        let mut ids = match names {
            [] => vec![us(), 0],
            names => names.iter().filter_map(|name| self.named(name)).map(|user| user.id).collect(),
        };
        ids.sort();
        ids.dedup();
        Approvers(ids)
    }
}

impl Approvers {
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
        );
        assert_eq!(users.named("ann").map(|user| (user.id, user.home.clone())), Some((1000, "/home/ann".into())));
        assert_eq!(users.name(1000), "ann");
        assert_eq!(users.name(5), "5");
    }

    #[test]
    fn whoever_is_no_user_here_may_not_answer() {
        let users = Users::of("root:x:0:0:root:/root:/bin/sh\n");
        assert!(users.approvers(&["nobody-here".to_owned()]).is_empty());
        assert!(users.approvers(&["nobody-here".to_owned(), "root".to_owned()]).contains(0));
        assert!(users.approvers(&[]).contains(us()));
    }
}
