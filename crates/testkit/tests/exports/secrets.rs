//! No value of a secret is in any export, as it is or encoded.

use belljar_testkit::Who;
use belljar_testkit::project::Said;
use belljar_testkit::twice::Check;

use crate::desk::{Desk, Saying};

pub const ALL: &[(&str, Check)] = &[("no_secret_is_in_any_export", secrets)];

const VALUE: &str = "Zx81-plum-orchid-7734-quartz";
const FORMATS: [&str; 6] = ["ndjson", "ocsf", "cloudevents", "syslog", "otlp", "prometheus"];

/// As it is, in base64 at each place that it may begin, and in hexadecimal.
fn forms() -> Vec<String> {
    let mut forms = vec![VALUE.to_owned(), VALUE.bytes().map(|byte| format!("{byte:02x}")).collect()];
    for skip in 0..3 {
        // Whole groups of three bytes: what is before and after them does not change their letters.
        let bytes = &VALUE.as_bytes()[skip..];
        forms.push(base64(&bytes[..bytes.len() / 3 * 3]));
    }
    forms
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks_exact(3) {
        let all = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        text.extend([18, 12, 6, 0].map(|shift| char::from(LETTERS[(all >> shift & 63) as usize])));
    }
    text
}

fn secrets(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let script =
        format!("echo {VALUE} > {VALUE}.txt; mkdir out; echo x > out/{VALUE}; unshare -r /bin/echo {VALUE}; exit 3");
    let run = |knows: bool| -> Result<(), String> {
        let mut command =
            desk.project.command(["run", "-q", "--artifact", "out", "--agent", "a", "--", "sh", "-c", &script]);
        if knows {
            command.env("DEPLOY_TOKEN", VALUE);
        }
        let said = Said::of_command(&mut command)?;
        if said.code == Some(3) { Ok(()) } else { Err(format!("{said:?}")) }
    };
    let found = || -> Result<Vec<(&str, String)>, String> {
        let mut found = Vec::new();
        for format in FORMATS {
            let said = desk.expect(&["export", format], 0, "")?;
            let text = String::from_utf8_lossy(&said.out).into_owned();
            found.extend(forms().into_iter().filter(|form| text.contains(form)).map(|form| (format, form)));
        }
        Ok(found)
    };
    run(true)?;
    if let Some((format, form)) = found()?.first() {
        return Err(format!("`{form}` is in {format}"));
    }
    // The control: what nobody knows to be a secret is in all of them that tell commands.
    run(false)?;
    let found = found()?;
    let lacking: Vec<&&str> =
        FORMATS[..5].iter().filter(|format| !found.iter().any(|(in_format, _)| in_format == *format)).collect();
    if lacking.is_empty() { Ok(()) } else { Err(format!("the control failed: it is not in {lacking:?}")) }
}
