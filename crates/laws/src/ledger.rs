//! Lines of the record: what is taken for an entry has one form, and what is looked for in it is what a reader of JSON
//! finds.

use ::ledger::hostile::{Head, Line, entry, write_line};

pub fn law(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        line_has_one_form(line);
    }
    if let Some(head) = Head::read(bytes) {
        assert_eq!(Head::read(&head.write()), Some(head), "a note is read as another");
    }
}

fn line_has_one_form(bytes: &[u8]) {
    let Some(line) = Line::read(bytes) else { return };
    // Whatever stands there, with the hash that it would have: anybody can write that.
    let body = String::from_utf8_lossy(line.rest).into_owned();
    let mut written = Vec::new();
    let hash = write_line(&mut written, line.number, &line.before, &body);
    written.pop();
    let again = Line::read(&written).expect("what is written can be read");
    assert_eq!((again.number, again.before, again.hash), (line.number, line.before, hash));
    assert!(again.holds(), "what is written holds");
    if line.holds() && body.as_bytes() == line.rest {
        assert_eq!(written, bytes, "a second form of an entry holds");
    }
    // An entry as we write them, with its data last, is looked up by the words that a reader of JSON finds in it.
    let (Some(fields), Some(entry)) = (again.fields(), entry(&again)) else { return };
    let data_is_last = body.split_once(",\"data\":").is_some_and(|(head, data)| {
        let data = data.strip_suffix('}').unwrap_or_default();
        !head.contains('\\') && serde_json::from_str::<serde_json::Value>(data).is_ok()
    });
    if !data_is_last {
        return;
    }
    let text = |value: Option<&[u8]>| value.and_then(|quoted| serde_json::from_slice::<String>(quoted).ok());
    assert_eq!(entry.at.as_bytes(), fields.at);
    assert_eq!(entry.kind.as_bytes(), fields.kind);
    assert_eq!(entry.denied, fields.denied);
    assert_eq!((entry.run, entry.user, entry.agent), (text(fields.run), text(fields.user), text(fields.agent)));
}
