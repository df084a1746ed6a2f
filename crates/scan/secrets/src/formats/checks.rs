//! What tells a secret from what only has its form: variety, checksums, words that people put in its place.

/// The checks that a format can name.
pub const CHECKS: &[&str] = &["github", "jwt", "password", "mixed", "basic"];

/// Whether the check called `name` accepts it. One that is not known accepts: whoever loads formats refuses it.
pub(super) fn passes(name: &str, secret: &[u8]) -> bool {
    match name {
        "github" => has_github_checksum(secret),
        "jwt" => is_jwt_header(secret),
        "password" => is_password(secret),
        "mixed" => is_mixed(secret) && is_password(secret),
        "basic" => is_basic(secret),
        _ => true,
    }
}

/// Shannon's, in bits a letter.
pub(super) fn entropy(secret: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for letter in secret {
        counts[usize::from(*letter)] += 1;
    }
    let all = secret.len() as f64;
    let bits = |count: &u32| {
        let share = f64::from(*count) / all;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

/// Words that stand in examples. Long enough to be in no token by chance.
const WORDS: &[&str] = &[
    "example", "placeholder", "changeme", "change_me", "change-me", "redacted", "your_", "your-", "yourapi",
    "yourtoken", "insert_", "notreal", "not_a_real", "not-a-real", "not_real", "dummy", "xxxx", "****", "...",
    "qwerty", "testtest", "tokenhere", "keyhere", "_here", "-here", "fakefake", "foobar",
];

pub(super) fn is_placeholder(secret: &[u8]) -> bool {
    let small = secret.to_ascii_lowercase();
    let opens = [b"<".as_slice(), b"${", b"$(", b"{{", b"%(", b"%{", b"$env:"];
    opens.iter().any(|mark| secret.starts_with(mark))
        || WORDS.iter().any(|word| memchr::memmem::find(&small, word.as_bytes()).is_some())
        || repeats(secret)
        || ascends(&small)
}

/// `aaaaaa`, `abababab`: fewer letters than any key has.
fn repeats(secret: &[u8]) -> bool {
    let mut run = 0;
    let mut last = None;
    for letter in secret {
        run = if last == Some(letter) { run + 1 } else { 1 };
        last = Some(letter);
        if run >= 6 {
            return true;
        }
    }
    let mut seen = [false; 256];
    secret.iter().for_each(|letter| seen[usize::from(*letter)] = true);
    secret.len() >= 12 && seen.iter().filter(|seen| **seen).count() <= 4
}

/// `12345678`, `abcdefgh`.
fn ascends(small: &[u8]) -> bool {
    let mut run = 1;
    for pair in small.windows(2) {
        let follows = pair[1] == pair[0].wrapping_add(1) || (pair[0] == b'9' && matches!(pair[1], b'0' | b'a'));
        run = if follows { run + 1 } else { 1 };
        if run >= 8 {
            return true;
        }
    }
    false
}

/// The last six letters are the CRC-32 of those between the prefix and them, in base 62.
fn has_github_checksum(secret: &[u8]) -> bool {
    let Some(at) = secret.iter().position(|letter| *letter == b'_') else { return false };
    let body = &secret[at + 1..];
    let Some(cut) = body.len().checked_sub(6) else { return false };
    body[cut..] == checksum(&body[..cut])
}

pub(super) fn checksum(body: &[u8]) -> [u8; 6] {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = crc32(body);
    let mut text = [b'0'; 6];
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[(rest % 62) as usize];
        rest /= 62;
    }
    text
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

/// The first part is base64 of an object that names an algorithm.
fn is_jwt_header(secret: &[u8]) -> bool {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let header = secret.split(|letter| *letter == b'.').next().unwrap_or_default();
    let Ok(header) = URL_SAFE_NO_PAD.decode(header) else { return false };
    header.starts_with(b"{")
        && header.trim_ascii_end().ends_with(b"}")
        && memchr::memmem::find(&header, b"\"alg\"").is_some()
}

/// Passwords of examples, and names of variables or functions in their place.
fn is_password(secret: &[u8]) -> bool {
    const COMMON: &[&str] = &[
        "password", "passwd", "pass", "secret", "postgres", "root", "admin", "user", "username", "test", "guest",
        "changeit", "none", "null", "nil", "undefined", "true", "false", "token", "mysql", "redis", "mongo", "default",
        "required", "optional", "string", "hunter2", "letmein", "password1", "password123", "secret123", "admin123",
        "test123", "p@ssw0rd", "mypassword", "mysecret", "rabbitmq", "kafka", "minio", "minioadmin", "sa", "me", "pw",
        "key", "value", "foo", "bar", "user:password", "username:password", "user:pass", "credentials", "hidden",
        "masked",
    ];
    // A common one is common however it is dressed up: in quotes, for an address, with digits for letters.
    let small = decoded(secret).trim_ascii().to_ascii_lowercase();
    let bare: Vec<u8> = small.iter().filter(|letter| !b"\"'`),;]}".contains(letter)).copied().collect();
    let read: Vec<u8> = small.iter().filter_map(|letter| as_read(*letter)).collect();
    let is_common = |text: &[u8]| COMMON.iter().any(|word| word.as_bytes() == text);
    let is_twice = small.len() > 4 && read.len().is_multiple_of(2) && read[..read.len() / 2] == read[read.len() / 2..];
    let is_dressed_up = is_common(&small)
        || is_common(&bare)
        || (is_twice && is_common(&read[..read.len() / 2]))
        || memchr::memmem::find(&read, b"password").is_some();
    !is_dressed_up
        && !matches!(secret.first(), Some(b'$' | b'<' | b'{' | b'%' | b'*' | b'[' | b'(' | b'&' | b'@' | b'#'))
        && memchr::memmem::find(secret, b"()").is_none()
        && memchr::memmem::find(&small, b"secret").is_none()
}

/// `pa%2Fss` as `pa/ss`.
fn decoded(secret: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(secret.len());
    let mut rest = secret;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(letter) => {
                out.push(letter);
                rest = &rest[3..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// The letter that a digit or sign is read as in a password; nothing for what stands between letters.
fn as_read(letter: u8) -> Option<u8> {
    match letter {
        b'4' | b'@' => Some(b'a'),
        b'0' => Some(b'o'),
        b'3' => Some(b'e'),
        b'5' | b'$' => Some(b's'),
        b'1' | b'!' => Some(b'i'),
        letter => letter.is_ascii_alphanumeric().then_some(letter),
    }
}

/// Letters and digits mixed as no word of a language or a program is.
fn is_mixed(secret: &[u8]) -> bool {
    let has = |kind: fn(&u8) -> bool| secret.iter().any(kind);
    let changes = secret.windows(2).filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit()).count();
    let cases = secret.len() >= 16 && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let is_mixed = changes >= 3 || (changes >= 2 && cases);
    has(u8::is_ascii_alphabetic)
        && is_mixed
        && !is_hash_or_uuid(secret)
        && !is_path(secret)
        && !is_words(secret)
        && !is_name(secret)
        && !is_time(secret)
        && !is_address(secret)
}

/// `V1LocalObjectReference`, `oauth2client.Credentials`, `MSV1_0_KEY`: names in programs, with few digits in them.
fn is_name(secret: &[u8]) -> bool {
    let digits = secret.iter().filter(|letter| letter.is_ascii_digit()).count();
    let is_plain = secret.iter().all(|letter| letter.is_ascii_alphanumeric() || b"_.:-[]".contains(letter));
    if !is_plain || digits > 4 || digits * 5 > secret.len() {
        return false;
    }
    // Words begin after what is no letter, with a capital after a small letter, and with the last capital of several.
    let letter = |at: Option<usize>| at.and_then(|at| secret.get(at)).filter(|letter| letter.is_ascii_alphabetic());
    let begins = |at: &usize| match (letter(at.checked_sub(1)), letter(Some(*at)), letter(Some(at + 1))) {
        (_, None, _) => false,
        (None, Some(_), _) => true,
        (Some(before), Some(this), after) => {
            let is_capital = this.is_ascii_uppercase();
            is_capital && (before.is_ascii_lowercase() || after.is_some_and(u8::is_ascii_lowercase))
        }
    };
    let words = (0..secret.len()).filter(begins).count();
    let letters = secret.iter().filter(|letter| letter.is_ascii_alphabetic()).count();
    words >= 2 && letters >= 4 * words
}

/// `2016-09-08T21:47:36Z`
fn is_time(secret: &[u8]) -> bool {
    secret.iter().all(|letter| letter.is_ascii_digit() || b"TZ:.+- ".contains(letter))
}

/// An address with nothing handed over in it.
fn is_address(secret: &[u8]) -> bool {
    (secret.starts_with(b"http://") || secret.starts_with(b"https://"))
        && !secret.iter().any(|letter| matches!(letter, b'?' | b'@' | b'#'))
}

/// Names that end before the word `token` and say that it is where a list goes on.
pub(super) fn is_of_a_page(before: &[u8]) -> bool {
    const NAMES: &[&str] = &["next", "page", "continuation", "cursor", "resume", "sync", "previous", "prev", "marker"];
    let small = before.to_ascii_lowercase();
    let name = small.strip_suffix(b"_").or_else(|| small.strip_suffix(b"-"));
    let name = name.or_else(|| small.strip_suffix(b" ")).unwrap_or(&small);
    NAMES.iter().any(|word| name.ends_with(word.as_bytes()))
}

/// Sums of files and names of objects have the form of keys, and stand everywhere.
fn is_hash_or_uuid(secret: &[u8]) -> bool {
    let is_hex = secret.iter().all(|letter| matches!(letter, b'0'..=b'9' | b'a'..=b'f'));
    let is_uuid = secret.len() == 36 && [8, 13, 18, 23].iter().all(|dash| secret[*dash] == b'-');
    is_uuid || (is_hex && matches!(secret.len(), 40 | 64 | 96 | 128))
}

/// `min-length-12-with-2-digits`: words and numbers, joined.
fn is_words(secret: &[u8]) -> bool {
    let parts: Vec<&[u8]> =
        secret.split(|letter| matches!(letter, b'-' | b'_' | b'.' | b'/' | b':' | b'+' | b'=')).collect();
    let is_word = |part: &&[u8]| part.iter().all(u8::is_ascii_alphabetic) || part.iter().all(u8::is_ascii_digit);
    parts.len() >= 3 && parts.iter().all(is_word)
}

fn is_path(secret: &[u8]) -> bool {
    secret.iter().filter(|letter| matches!(letter, b'/' | b'.' | b'\\')).count() * 6 > secret.len()
}

/// `user:password` in base64, as HTTP sends it.
fn is_basic(secret: &[u8]) -> bool {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    let bare = secret.split(|letter| *letter == b'=').next().unwrap_or_default();
    let Ok(plain) = STANDARD_NO_PAD.decode(bare) else { return false };
    let Some(colon) = plain.iter().position(|letter| *letter == b':') else { return false };
    plain.iter().all(|letter| (b' '..=b'~').contains(letter))
        && is_password(&plain[colon + 1..])
        && plain.len() > colon + 1
}
