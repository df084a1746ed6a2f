//! Secrets that are added outside: where a request has what stands for one, and what it then becomes.
//!
//! A host to which one may be added takes no other credential: with somebody else's key an agent could carry out what it
//! sees here to somebody else's account. Keys in a body are not seen as such.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hyper::HeaderMap;
use hyper::header::{COOKIE, HeaderValue};
use memchr::memmem;
use model::{Judgement, Ruling};
use zeroize::Zeroizing;

use super::value::SecretValue;

/// Headers with which one says who one is.
const CREDENTIALS: &[&str] = &[
    "authorization", "x-api-key", "api-key", "apikey", "x-apikey", "x-auth-token", "x-access-token", "x-token",
    "private-token", "job-token", "deploy-token", "x-goog-api-key", "x-amz-security-token", "x-session-token",
    "x-github-token", "x-gitlab-token", "x-vault-token", "x-figma-token", "x-authorization", "x-api-token",
    "x-auth-key", "dd-api-key", "dd-application-key", "x-functions-key", "ocp-apim-subscription-key", "x-rapidapi-key",
];
/// The same in a query.
const CREDENTIALS_IN_QUERY: &[&str] = &[
    "access_token", "accesstoken", "api_key", "apikey", "api-key", "api_token", "key", "token", "auth", "auth_token",
    "authorization", "sig", "signature", "x-amz-signature", "x-amz-security-token", "x-amz-credential",
    "x-goog-signature", "x-goog-credential", "awsaccesskeyid", "googleaccessid", "private_token", "job_token",
    "client_secret", "password", "oauth_token", "id_token", "secret", "subscription-key", "session_token",
    "private_key", "access_key", "accesskey", "api_secret", "app_key", "appkey", "auth_key", "user_key", "jwt",
    "bearer", "bearer_token", "apitoken", "personal_access_token", "pat",
];

/// Words of the names of headers that have a credential in them, whoever made them up.
const CREDENTIAL_WORDS: &[&str] = &[
    "apikey", "apitoken", "accesstoken", "auth", "authentication", "authorization", "authtoken", "bearer",
    "credential", "credentials", "jwt", "passphrase", "passwd", "password", "pat", "secret", "sessiontoken", "token",
];
/// These have such words and say nothing about who one is.
const NO_CREDENTIALS: &[&str] = &[
    "sec-websocket-key", "idempotency-key", "x-idempotency-key", "x-csrf-token", "x-xsrf-token", "csrf-token",
    "surrogate-key",
];
/// What programs send beside a key that is the user.
const NO_PASSWORDS: &[&str] = &["", "x", "X", "unused", "api_token", "x-oauth-basic"];
/// Of a user beside a key that is the password, or of a word before it: keys are longer.
const LONGEST_WORD: usize = 19;

/// Also in other letters: to some servers `X_API_KEY` is `x-api-key`.
fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let has_word = || name.split('-').any(|word| CREDENTIAL_WORDS.contains(&word)) || name.ends_with("-key");
    CREDENTIALS.contains(&name.as_str()) || (has_word() && !NO_CREDENTIALS.contains(&name.as_str()))
}

/// A name, or an address of mail: no key.
fn is_user(user: &str) -> bool {
    user.len() <= LONGEST_WORD || user.contains('@')
}

/// All of a connection, with what was said to each: it goes to one place.
pub struct Keys<'a> {
    pub secrets: &'a [SecretValue],
    /// As many as secrets.
    pub judged: &'a [Judgement],
    /// Whether others can listen on the way.
    pub exposed: bool,
}

/// What is to be done to a request.
#[derive(Debug, Default)]
pub struct Plan {
    /// By their place in the list, each once.
    pub used: Vec<usize>,
    pub strip_cookies: bool,
}

/// What was done to it.
pub struct Applied {
    pub query: String,
    /// What was sent encoded with something else, and what was given in its place: so that it is known if it comes back.
    pub encoded: Vec<(Zeroizing<String>, String)>,
}

/// Why a request can't go as it is. Nothing in it is a value.
#[derive(Debug, PartialEq, Eq)]
pub struct Denial {
    pub rule: String,
    pub why: String,
    pub grant: String,
    pub secret: Option<String>,
}

impl Keys<'_> {
    pub fn plan(&self, headers: &HeaderMap, path: &str, query: &str) -> Result<Plan, Denial> {
        if self.secrets.is_empty() {
            return Ok(Plan::default());
        }
        let mut plan = Plan::default();
        for (number, secret) in self.secrets.iter().enumerate() {
            if contains(path.as_bytes(), &secret.stand_in)
                || contains(path.as_bytes(), &percent_encoded(&secret.stand_in))
            {
                return Err(self.misplaced(secret, "the path"));
            }
            let in_headers = headers.iter().any(|(name, value)| name != COOKIE && in_header(value.as_bytes(), secret));
            if in_headers || in_query(query, secret) {
                self.may(number, secret)?;
                plan.used.push(number);
            }
        }
        if self.is_guarded() {
            self.no_other_credential(headers, query)?;
            plan.strip_cookies = true;
        } else if let Some(secret) = self
            .secrets
            .iter()
            .find(|secret| headers.get_all(COOKIE).iter().any(|value| contains(value.as_bytes(), &secret.stand_in)))
        {
            return Err(self.misplaced(secret, "a cookie"));
        }
        Ok(plan)
    }

    /// Has the values of all that will be added, and none that is too old.
    pub async fn ready(&self, plan: &Plan) -> Result<(), Denial> {
        for secret in plan.used.iter().filter_map(|number| self.secrets.get(*number)) {
            secret.ready().await.map_err(|why| Denial {
                rule: "secret.fetch".to_owned(),
                why: format!("the secret `{}` could not be fetched: {why}", secret.name),
                grant: "mend where it comes from: see `belljar secret ls` and `[secrets]` in the policy".to_owned(),
                secret: Some(secret.name.clone()),
            })?;
        }
        Ok(())
    }

    /// Replaces what stands for secrets in the headers; says what the query becomes.
    pub fn apply(&self, plan: &Plan, headers: &mut HeaderMap, query: &str) -> Result<Applied, Denial> {
        if plan.strip_cookies {
            headers.remove(COOKIE);
        }
        let mut query = query.to_owned();
        let mut encoded = Vec::new();
        for secret in plan.used.iter().filter_map(|number| self.secrets.get(*number)) {
            let own = secret.value().ok_or_else(|| self.unfit(secret))?;
            for value in headers.values_mut() {
                if let Some(changed) = in_place(value.as_bytes(), secret, &own).map_err(|()| self.unfit(secret))? {
                    let mut changed = HeaderValue::from_bytes(&changed).map_err(|_| self.unfit(secret))?;
                    changed.set_sensitive(true);
                    if let (Some(given), Some(sent)) = (in_basic(value.as_bytes()), in_basic(changed.as_bytes())) {
                        encoded.push((Zeroizing::new(sent.to_owned()), given.to_owned()));
                    }
                    *value = changed;
                }
            }
            let value = percent_encoded(&own);
            for stand_in in [percent_encoded(&secret.stand_in).as_str(), secret.stand_in.as_str()] {
                query = query.replace(stand_in, &value);
            }
        }
        Ok(Applied { query, encoded })
    }

    /// Something stands where no secret is ever put.
    pub fn misplaced(&self, secret: &SecretValue, place: &str) -> Denial {
        Denial {
            rule: "secret.place".to_owned(),
            why: format!(
                "what stands for the secret `{}` is in {place} of the request; it is added to headers and queries only",
                secret.name
            ),
            grant: "send it in a header".to_owned(),
            secret: Some(secret.name.clone()),
        }
    }

    /// Whether one may be added here.
    fn is_guarded(&self) -> bool {
        self.judged.iter().any(|judgement| judgement.ruling != Ruling::Deny)
    }

    fn may(&self, number: usize, secret: &SecretValue) -> Result<(), Denial> {
        let judgement = self.judged.get(number);
        if judgement.is_none_or(|judgement| judgement.ruling == Ruling::Deny) {
            let reason = judgement.and_then(|judgement| judgement.reasons.first());
            return Err(Denial {
                rule: reason.map_or("secret.default", |reason| &reason.rule).to_owned(),
                why: format!("the secret `{}` is not for this host", secret.name),
                grant: reason.map_or("", |reason| &reason.grant).to_owned(),
                secret: Some(secret.name.clone()),
            });
        }
        if self.exposed {
            return Err(Denial {
                rule: "secret.clear".to_owned(),
                why: format!("the secret `{}` would go over the network in clear", secret.name),
                grant: "use https".to_owned(),
                secret: Some(secret.name.clone()),
            });
        }
        Ok(())
    }

    fn no_other_credential(&self, headers: &HeaderMap, query: &str) -> Result<(), Denial> {
        let other = |place: String| Denial {
            rule: "secret.other".to_owned(),
            why: format!("this host takes only its secret, and {place} has another credential"),
            grant: "send what stands for the secret, or nothing".to_owned(),
            secret: None,
        };
        for name in headers.keys().filter(|name| is_credential(name.as_str())) {
            let values: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
            // One, and nothing beside it that somebody could take for the credential instead.
            let fine = match values.as_slice() {
                [] => true,
                [value] => self.secrets.iter().any(|secret| self.is_only(value.as_bytes(), secret)),
                _ => false,
            };
            if !fine {
                return Err(other(format!("the header `{name}`")));
            }
        }
        for part in query.split(['&', ';']) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = percent_decoded(name).to_lowercase();
            if CREDENTIALS_IN_QUERY.contains(&name.as_str())
                && !value.is_empty()
                && !self.secrets.iter().any(|secret| percent_decoded(value) == secret.stand_in)
            {
                return Err(other(format!("the parameter `{name}` of its query")));
            }
        }
        Ok(())
    }

    /// Whether it says who one is with the secret and with nothing else: itself, after one word or none, or as one of the two
    /// of Basic.
    fn is_only(&self, value: &[u8], secret: &SecretValue) -> bool {
        let Ok(text) = std::str::from_utf8(value) else { return false };
        let text = text.trim();
        if let Some((user, password)) = basic(value) {
            let stands_in = |text: &str| self.secrets.iter().any(|secret| secret.stand_in == text);
            // Of the two, servers look at one: the other must not be somebody else's key.
            return password == secret.stand_in && (is_user(&user) || stands_in(&user))
                || user == secret.stand_in && (NO_PASSWORDS.contains(&password.as_str()) || stands_in(&password));
        }
        let word = |word: &str| {
            word.len() <= LONGEST_WORD && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        match text.split_once(' ') {
            Some((scheme, rest)) => word(scheme) && rest.trim() == secret.stand_in,
            None => text == secret.stand_in,
        }
    }

    fn unfit(&self, secret: &SecretValue) -> Denial {
        Denial {
            rule: "secret.value".to_owned(),
            why: format!("the value of the secret `{}` can't be where it was asked for", secret.name),
            grant: "set it anew".to_owned(),
            secret: Some(secret.name.clone()),
        }
    }
}

fn contains(text: &[u8], part: &str) -> bool {
    memmem::find(text, part.as_bytes()).is_some()
}

fn in_header(value: &[u8], secret: &SecretValue) -> bool {
    contains(value, &secret.stand_in)
        || basic(value).is_some_and(|(user, password)| user == secret.stand_in || password == secret.stand_in)
}

fn in_query(query: &str, secret: &SecretValue) -> bool {
    query.contains(&secret.stand_in) || query.contains(percent_encoded(&secret.stand_in).as_str())
}

/// User and password as they are encoded, if it is Basic.
fn in_basic(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let (scheme, rest) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("basic").then(|| rest.trim().trim_end_matches('='))
}

/// User and password, if it is Basic.
fn basic(value: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8(STANDARD_NO_PAD.decode(in_basic(value)?).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// With the secret itself, if it was in there.
fn in_place(value: &[u8], secret: &SecretValue, own: &str) -> Result<Option<Zeroizing<Vec<u8>>>, ()> {
    if let Some((user, password)) = basic(value)
        && (user == secret.stand_in || password == secret.stand_in)
    {
        let of = |part: String| Zeroizing::new(if part == secret.stand_in { own.to_owned() } else { part });
        let (user, password) = (of(user), of(password));
        if user.contains(':') {
            return Err(());
        }
        let both = Zeroizing::new(format!("{}:{}", *user, *password));
        return Ok(Some(Zeroizing::new(format!("Basic {}", STANDARD.encode(both.as_bytes())).into_bytes())));
    }
    if !contains(value, &secret.stand_in) {
        return Ok(None);
    }
    let mut out = Zeroizing::new(Vec::with_capacity(value.len() + own.len()));
    let mut from = 0;
    for at in memmem::find_iter(value, secret.stand_in.as_bytes()) {
        out.extend_from_slice(&value[from..at]);
        out.extend_from_slice(own.as_bytes());
        from = at + secret.stand_in.len();
    }
    out.extend_from_slice(&value[from..]);
    Ok(Some(out))
}

pub fn percent_encoded(text: &str) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(text.len()));
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(if byte == b'+' { b' ' } else { byte });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Looks for what stands for secrets in a stream, wherever it is cut.
pub struct Scan {
    stand_ins: Vec<Vec<u8>>,
    longest: usize,
    before: Vec<u8>,
}

impl Scan {
    pub fn new(secrets: &[SecretValue]) -> Scan {
        let stand_ins: Vec<Vec<u8>> = secrets.iter().map(|secret| secret.stand_in.clone().into_bytes()).collect();
        let longest = stand_ins.iter().map(Vec::len).max().unwrap_or(0);
        Scan { stand_ins, longest, before: Vec::new() }
    }

    /// The place in the list of the first that was found.
    pub fn finds(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.longest == 0 {
            return None;
        }
        let edge = bytes.len().min(self.longest - 1);
        self.before.extend_from_slice(&bytes[..edge]);
        let found = |text: &[u8]| {
            self.stand_ins.iter().position(|stand_in| !stand_in.is_empty() && memmem::find(text, stand_in).is_some())
        };
        if let Some(number) = found(&self.before).or_else(|| found(bytes)) {
            return Some(number);
        }
        let keep = self.longest - 1;
        if bytes.len() >= keep {
            self.before = bytes[bytes.len() - keep..].to_vec();
        } else if self.before.len() > keep {
            self.before.drain(..self.before.len() - keep);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_is_found_wherever_the_stream_is_cut() {
        let secrets = [SecretValue::new("a", "STANDIN", "x"), SecretValue::new("b", "OTHER-ONE", "y")];
        let text = b"...OTHER-ON.STANDI.STANDIN...";
        for cut in 0..text.len() {
            for second in cut..text.len() {
                let mut scan = Scan::new(&secrets);
                let found = [&text[..cut], &text[cut..second], &text[second..]].into_iter().find_map(|p| scan.finds(p));
                assert_eq!(found, Some(0), "{cut} {second}");
            }
        }
        assert_eq!(Scan::new(&secrets).finds(b"STANDI N"), None);
    }
}
