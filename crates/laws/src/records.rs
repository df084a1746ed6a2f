//! Records of /proc: a process can neither hide nor change its numbers by the name it gives itself.

use arbitrary::Arbitrary;
use native::hostile::records::{self, Stat};

use crate::made_of;

pub fn law(bytes: &[u8]) {
    // Whatever the kernel may come to write.
    records::stat(bytes);
    assert!(records::children(bytes).all(|pid| pid > 0), "a child that is everybody");
    records::kilobytes(bytes, "RssAnon:");
    if let Some(process) = made_of::<Process>(bytes) {
        process.is_read_as_it_is();
    }
}

#[derive(Arbitrary, Debug)]
struct Process {
    pid: u16,
    name: Vec<u8>,
    state: u8,
    before: [i32; 10],
    times: [u32; 4],
    between: [i32; 4],
    started: u64,
    after: Vec<u64>,
    anonymous: u32,
    shared: u32,
    children: Vec<u16>,
}

impl Process {
    fn is_read_as_it_is(&self) {
        let Process { pid, state, before, times, between, started, after, anonymous, shared, children, .. } = self;
        // What prctl(PR_SET_NAME) takes.
        let name: Vec<u8> = self.name.iter().copied().filter(|byte| *byte != 0).take(15).collect();

        let fields = |numbers: &[i32]| numbers.iter().map(|number| format!(" {number}")).collect::<String>();
        let state = char::from(b'A' + state % 26);
        let [user, system, child_user, child_system] = times;
        let rest = after.iter().map(|number| format!(" {number}")).collect::<String>();
        let numbers = format!(
            ") {state}{} {user} {system} {child_user} {child_system}{} {started}{rest}\n",
            fields(before),
            fields(between)
        );
        let stat = [format!("{pid} (").as_bytes(), &name, numbers.as_bytes()].concat();
        let ticks = u64::from(*user) + u64::from(*system);
        let of_children = u64::from(*child_user) + u64::from(*child_system);
        let expected = Stat { pid: i32::from(*pid), started: *started, ticks, of_children };
        assert_eq!(records::stat(&stat), Some(expected), "{self:?}");

        // The kernel escapes line breaks and backslashes in this one.
        let escaped: Vec<u8> = name
            .iter()
            .flat_map(|byte| match byte {
                b'\n' => b"\\n".to_vec(),
                b'\\' => b"\\\\".to_vec(),
                other => vec![*other],
            })
            .collect();
        let lines = format!(
            "\nUmask:\t0022\nState:\t{state}\nRssAnon:\t{anonymous:8} kB\nRssFile:\t       1 kB\nRssShmem:\t{shared:8} kB\n"
        );
        let status = [b"Name:\t", escaped.as_slice(), lines.as_bytes()].concat();
        let read = |key| records::kilobytes(&status, key) / 1024;
        assert_eq!((read("RssAnon:"), read("RssShmem:")), ((*anonymous).into(), (*shared).into()), "{self:?}");

        let list: String = children.iter().map(|child| format!("{child} ")).collect();
        let expected = children.iter().filter(|child| **child > 0).map(|child| i32::from(*child));
        assert!(records::children(list.as_bytes()).eq(expected), "{self:?}");
    }
}
