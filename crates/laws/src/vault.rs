//! The file of a secret: what is read was written by us, reads back the same, and no complaint repeats what is in it.

use ::vault::hostile::{Record, read, write};

pub fn law(bytes: &[u8]) {
    for name in ["TOKEN", "a.b-c"] {
        let record: Record = match read(name, bytes) {
            Ok(record) => record,
            Err(why) => {
                crate::shown::is_one_line(why);
                continue;
            }
        };
        assert_eq!(record.about.name, name);
        assert!(bytes.starts_with(&record.bound), "a seal is bound to what is in the file");
        let again = write(&record.bound, &record.sealed);
        assert_eq!(again, bytes, "a file has one form");
        assert_eq!(read(name, &again).as_ref(), Ok(&record));
        // What is shown of it is as it could have been set.
        assert!(record.about.hosts.iter().all(|host| model::secret_host(host).as_ref() == Some(host)));
        assert!(model::is_variable(&record.about.variable));
    }
}
