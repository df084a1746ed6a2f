//! A program that wants its secrets out: split over writes, encoded, wrapped, in huge lines, among bytes that are no text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use secrets::formats::examples::spelled_out;
use secrets::{Added, Formats, Redacted, Redactor, Values};

const VALUE: &[u8] = b"c0rrect?horse/battery&st\"aple's";

fn one() -> Values {
    let mut values = Values::new();
    assert_eq!(values.add("DEPLOY_KEY", VALUE), Added::Kept);
    values
}

fn redacted(values: &Values, formats: Option<&Formats>, text: &[u8]) -> (String, Redacted) {
    let mut redactor = Redactor::new(values, formats);
    let mut out = Vec::new();
    redactor.push(text, &mut out);
    let counts = redactor.finish(&mut out);
    (String::from_utf8_lossy(&out).into_owned(), counts)
}

#[test]
fn a_value_is_replaced_by_its_name() {
    let (out, counts) = redacted(&one(), None, &[b"a ".as_slice(), VALUE, b" b ", VALUE, b"\n"].concat());
    assert_eq!(out, "a [redacted:DEPLOY_KEY] b [redacted:DEPLOY_KEY]\n");
    assert_eq!(counts.counts["DEPLOY_KEY"], 2);
}

#[test]
fn a_value_split_over_writes_is_one_value() {
    let text = [b"before ".as_slice(), VALUE, b" after"].concat();
    for cut in 0..text.len() {
        let mut redactor = Redactor::new(&one(), Some(&Formats::built_in()));
        let mut out = Vec::new();
        redactor.push(&text[..cut], &mut out);
        redactor.push(b"", &mut out);
        redactor.push(&text[cut..], &mut out);
        redactor.finish(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), "before [redacted:DEPLOY_KEY] after", "cut at {cut}");
    }
}

#[test]
fn a_prompt_is_shown_at_once() {
    let mut redactor = Redactor::new(&one(), Some(&Formats::built_in()));
    for prompt in ["Enter password: ", "[sudo] password for user: ", "Continue? [y/N] ", "token: ", "API key > ", "$ "]
    {
        let mut out = Vec::new();
        redactor.push(prompt.as_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), prompt);
        redactor.push(b"\n", &mut out);
    }
}

#[test]
fn every_encoding_is_known() {
    let text = std::str::from_utf8(VALUE).expect("as written above");
    let hex: String = VALUE.iter().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = VALUE.iter().map(|byte| format!("%{byte:02X}")).collect();
    let reserved =
        text.replace('?', "%3F").replace('/', "%2F").replace('&', "%26").replace('"', "%22").replace('\'', "%27");
    let mut forms: Vec<String> = vec![
        STANDARD.encode(VALUE),
        STANDARD.encode([VALUE, b"\n"].concat()),
        URL_SAFE.encode(VALUE),
        URL_SAFE_NO_PAD.encode(VALUE),
        hex.clone(),
        hex.to_uppercase(),
        VALUE.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
        VALUE.iter().map(|byte| format!("\\x{byte:02x}")).collect(),
        percent.clone(),
        percent.to_lowercase(),
        reserved.clone(),
        reserved.replace("%3F", "%3f").replace("%2F", "%2f"),
        serde_json::to_string(text).expect("as written above"),
        text.replace('/', "\\/").replace('"', "\\\""),
        text.replace('\'', "'\\''"),
        text.replace('&', "&amp;").replace('"', "&quot;").replace('\'', "&#39;"),
    ];
    for before in 0..5 {
        for after in 0..4 {
            let inside = [vec![b'u'; before], VALUE.to_vec(), vec![b'v'; after]].concat();
            forms.push(STANDARD.encode(&inside));
            forms.push(URL_SAFE.encode(&inside));
        }
    }
    for form in forms {
        let (out, counts) = redacted(&one(), None, format!("x {form} y\n").as_bytes());
        assert_eq!(counts.total(), 1, "{form} became {out}");
        // What is left of base64 are letters of what stands around the value.
        let rest = out.replace("[redacted:DEPLOY_KEY]", "").replace("x ", "").replace(" y\n", "");
        assert!(rest.len() <= 12, "{form} became {out}");
    }
}

#[test]
fn base64_over_lines_is_known() {
    for (columns, end) in [(76, "\n"), (64, "\n"), (64, "\r\n"), (60, "\n"), (76, "\n    "), (64, "\\n")] {
        for before in 0..100 {
            let text = STANDARD.encode([vec![b'u'; before], VALUE.to_vec(), vec![b'w'; 20]].concat());
            let lines: Vec<&str> = text
                .as_bytes()
                .chunks(columns)
                .map(|line| std::str::from_utf8(line).expect("as written above"))
                .collect();
            let (out, counts) = redacted(&one(), None, lines.join(end).as_bytes());
            assert_eq!(counts.total(), 1, "{columns} {end:?} {before}: {out}");
        }
    }
}

#[test]
fn the_longest_of_values_names_what_overlaps() {
    let mut values = Values::new();
    for (name, value) in [("SHORT", "abcdefgh12"), ("LONG", "abcdefgh1234567890"), ("NEXT", "67890zyxwvu")] {
        assert_eq!(values.add(name, value.as_bytes()), Added::Kept);
    }
    let (out, _) = redacted(&values, None, b"<abcdefgh12> <abcdefgh1234567890> <abcdefgh1234567890zyxwvu>");
    assert_eq!(out, "<[redacted:SHORT]> <[redacted:LONG]> <[redacted:LONG]>");
}

#[test]
fn a_value_beats_a_format_and_its_length_is_not_told() {
    let token = spelled_out("ghp_⟨github 36⟩").expect("as written above");
    let mut values = Values::new();
    assert_eq!(values.add("TOKEN", token.as_bytes()), Added::Kept);
    let (out, _) = redacted(&values, Some(&Formats::built_in()), format!("GITHUB_TOKEN={token}\n").as_bytes());
    assert_eq!(out, "GITHUB_TOKEN=[redacted:TOKEN]\n");
    let (out, _) = redacted(&Values::new(), Some(&Formats::built_in()), format!("GITHUB_TOKEN={token}\n").as_bytes());
    assert_eq!(out, "GITHUB_TOKEN=[redacted:github.token.personal]\n");
}

#[test]
fn huge_lines_are_no_way_out() {
    let mut text = vec![b'a'; 3 << 20];
    text.extend_from_slice(VALUE);
    text.extend(vec![b'-'; 1 << 20]);
    text.extend(spelled_out(" AKIA⟨base32 16⟩ ").expect("as written above").bytes());
    text.extend(vec![b'b'; 1 << 20]);
    let mut redactor = Redactor::new(&one(), Some(&Formats::built_in()));
    let mut out = Vec::new();
    for piece in text.chunks(8191) {
        redactor.push(piece, &mut out);
        assert!(redactor.held() < 32 << 10, "{} bytes wait", redactor.held());
    }
    let counts = redactor.finish(&mut out);
    assert_eq!((counts.counts["DEPLOY_KEY"], counts.counts["aws.access-key"]), (1, 1));
    assert_eq!(counts.total(), 2);
}

#[test]
fn a_token_longer_than_any_window_is_swallowed_whole() {
    let token = spelled_out("sk-proj-⟨alnum 4000⟩").expect("as written above") + &"k3".repeat(50_000);
    let (out, _) = redacted(&Values::new(), Some(&Formats::built_in()), format!("key {token} end\n").as_bytes());
    assert_eq!(out, "key [redacted:openai.project-key] end\n");
}

#[test]
fn bytes_that_are_no_text_come_through_and_hide_nothing() {
    let mut text: Vec<u8> = (0..=255).collect();
    text.extend_from_slice(VALUE);
    text.extend((0..=255).rev().collect::<Vec<u8>>());
    let mut redactor = Redactor::new(&one(), Some(&Formats::built_in()));
    let mut out = Vec::new();
    redactor.push(&text, &mut out);
    redactor.finish(&mut out);
    let expected =
        [(0..=255).collect::<Vec<u8>>(), b"[redacted:DEPLOY_KEY]".to_vec(), (0..=255).rev().collect()].concat();
    assert!(out == expected);
    let mut values = Values::new();
    let raw = [0xff, 0x00, 0xfe, 0x80, 0x1b, 0xc3, 0x28, 0x90, 0x91];
    assert_eq!(values.add("RAW", &raw), Added::Kept);
    let (out, _) = redacted(&values, None, &[b"a".as_slice(), &raw, b"b"].concat());
    assert_eq!(out, "a[redacted:RAW]b");
}

#[test]
fn a_private_key_loses_its_body_and_nothing_after_it() {
    let formats = Formats::built_in();
    let key = spelled_out("-----BEGIN RSA PRIVATE KEY-----\n⟨pem 20⟩\nQ29tZQ==\n-----END RSA PRIVATE KEY-----\n")
        .expect("as written above");
    let (out, _) = redacted(&Values::new(), Some(&formats), format!("a\n{key}done in 3 s\n").as_bytes());
    assert_eq!(
        out,
        "a\n-----BEGIN RSA PRIVATE KEY-----\n[redacted:private-key.rsa]\n-----END RSA PRIVATE KEY-----\ndone in 3 s\n"
    );
    let with_headers =
        key.replacen("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n", 1);
    let indented: String = key.lines().map(|line| format!("    > {line}\n")).collect();
    let joined = key.replace('\n', " ");
    let quoted = format!("{:?}", key);
    let twice = format!("{:?}", quoted);
    let cut: String = key.lines().take(6).map(|line| format!("{line}\n")).collect::<String>() + "done in 3 s\n";
    let numbered: Vec<String> = vec![with_headers, indented, joined, quoted, twice, cut];
    for text in numbered {
        let (out, counts) = redacted(&Values::new(), Some(&formats), text.as_bytes());
        assert_eq!(counts.total(), 1, "{out}");
        for line in key.lines().filter(|line| line.len() == 64).take(5) {
            assert!(!out.contains(line), "{out}");
        }
        assert!(!text.contains("done") || out.ends_with("done in 3 s\n"), "{out}");
    }
}

#[test]
fn lines_of_a_long_value_are_known_alone() {
    let key =
        spelled_out("-----BEGIN PRIVATE KEY-----\n⟨pem 26⟩\n-----END PRIVATE KEY-----\n").expect("as written above");
    let mut values = Values::new();
    assert_eq!(values.add("KEY", key.as_bytes()), Added::Kept);
    let line = key.lines().nth(9).expect("as written above");
    let (out, _) = redacted(&values, None, format!("line 9 is {line}\n").as_bytes());
    assert_eq!(out, "line 9 is [redacted:KEY]\n");
    let (out, counts) = redacted(&values, None, format!("a{key}b").as_bytes());
    assert!(counts.total() >= 1);
    assert!(key.lines().filter(|line| !line.starts_with('-')).all(|line| !out.contains(line)), "{out}");
}

#[test]
fn a_value_of_many_kilobytes_is_known() {
    let long = spelled_out(&"⟨alnum 4096⟩".repeat(5)).expect("as written above");
    let mut values = Values::new();
    assert_eq!(values.add("LONG", long.as_bytes()), Added::Kept);
    let (out, _) = redacted(&values, None, format!("a {long} b {} c", STANDARD.encode(&long)).as_bytes());
    assert!(out.len() < 200, "{} bytes", out.len());
}

#[test]
fn a_value_cut_by_the_end_is_taken_out_from_half_on() {
    for (count, stays) in [(VALUE.len() / 2 + 1, false), (VALUE.len() - 1, false), (7, true), (3, true)] {
        let (out, _) = redacted(&one(), None, &[b"x ".as_slice(), &VALUE[..count]].concat());
        assert_eq!(out == "x [redacted:DEPLOY_KEY]", !stays, "{count}: {out}");
        assert!(!stays || out.len() == 2 + count);
    }
}

#[test]
fn a_name_tells_no_value_and_does_nothing() {
    let mut values = Values::new();
    assert_eq!(values.add("is_hunter2hunter2", b"hunter2hunter2"), Added::Kept);
    assert_eq!(values.add("\x1b]0;x\x07", b"another-value-9"), Added::Kept);
    let (out, _) = redacted(&values, None, b"hunter2hunter2 another-value-9");
    assert_eq!(out, "[redacted:secret-1] [redacted:__0_x_]");
    assert!(!format!("{values:?}").contains("hunter2"));
}

#[test]
fn short_and_common_values_are_refused_and_said_to_be() {
    let mut values = Values::new();
    for (value, added) in [
        ("abc1234", Added::TooShort),
        ("true", Added::TooShort),
        ("password", Added::TooCommon),
        ("00000000", Added::TooCommon),
        ("production\n", Added::TooCommon),
        ("12345678", Added::TooCommon),
        ("", Added::TooShort),
    ] {
        assert_eq!(values.add("A", value.as_bytes()), added, "{value}");
    }
    assert!(values.is_empty());
    assert_eq!(values.add_anyway("PIN", b"7291"), Added::Kept);
    assert_eq!(values.add_anyway("PIN", b"729"), Added::TooShort);
    let (out, _) = redacted(&values, None, b"pin 7291.");
    assert_eq!(out, "pin [redacted:PIN].");
}

#[test]
fn hostile_text_takes_no_longer_than_its_length() {
    let formats = Formats::built_in();
    let repeated = [
        "password=", "-eyJhbGciOi", "-----BEGIN RSA PRIVATE KEY-----", "https://a:", "token token=\"", "ghp_",
        " sk-proj-a", "\"kty\"", "jdbc:a?", "$6$", "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n",
        "cloudflare key ",
    ];
    for part in repeated {
        let text = part.repeat((64 << 10) / part.len());
        let began = std::time::Instant::now();
        redacted(&one(), Some(&formats), text.as_bytes());
        // Without optimisation, on a machine that others use too.
        assert!(began.elapsed().as_secs() < 20, "{part}: {:?}", began.elapsed());
    }
}
