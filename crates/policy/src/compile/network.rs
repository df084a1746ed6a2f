//! `[network]`, `[secrets]`, and what rules say of requests.

use model::{Action, Ruling};
use toml::Spanned;

use super::{Compiler, Owner};
use crate::file::{self, Text};
use crate::host::HostPattern;
use crate::immutable::Immutable;
use crate::pattern::Glob;
use crate::reader::BadPolicy;
use crate::rule::{Condition, Conditions, Rule};
use crate::sheet::{SecretTerms, Sheet};
use crate::url::{Method, RequestPattern, UrlPattern};

/// Where downloads are, if no port is said.
const WEB: &[u16] = &[443, 80];
const CONNECT: &[Action] = &[Action::Connect];

impl Compiler<'_> {
    pub(super) fn network(&self, network: &file::Network, sheet: &mut Sheet) -> Result<(), BadPolicy> {
        let file::Network { allow, ask, deny, download, git, immutable, cache } = network;
        let lists = [
            ("network.allow", allow, Ruling::Allow),
            ("network.ask", ask, Ruling::Ask),
            ("network.deny", deny, Ruling::Deny),
        ];
        for (id, list, then) in lists {
            for text in list {
                let host = Condition::Host(vec![self.host(text)?]);
                self.section(sheet, id, text, CONNECT, host, then);
            }
        }
        for text in download {
            let hosts = Condition::Host(self.host(text)?.on(WEB));
            let reads = || requests(&["GET", "HEAD"], &[]);
            let said = text.get_ref();
            self.conditional(sheet, "network.download", text, Ruling::Allow, &hosts, Condition::Request(reads()), {
                format!("`{said}` is listed under `network.download`")
            });
            let others = Condition::OtherRequests(vec![reads()]);
            self.conditional(sheet, "network.download", text, Ruling::Ask, &hosts, others, {
                format!("`{said}` is for downloads, and this may publish something")
            });
        }
        for text in git {
            let hosts = Condition::Host(self.host(text)?.on(WEB));
            let looks = || requests(&["GET", "HEAD"], &[]);
            // Large files are asked for in a list, whether to get or to put them. The list itself changes nothing: what is
            // put is put by other requests, which are asked about.
            let fetches = || requests(&["POST"], &["**/git-upload-pack", "**/info/lfs/objects/batch"]);
            let pushes = requests(&[], &["**/*git-receive-pack*/**", "**?*git-receive-pack*"]);
            let listed = format!("`{}` is listed under `network.git`", text.get_ref());
            let mut add = |then, when, why: &str| {
                self.conditional(sheet, "network.git", text, then, &hosts, when, why.to_owned());
            };
            add(Ruling::Allow, Condition::Request(looks()), &listed);
            add(Ruling::Allow, Condition::Request(fetches()), &listed);
            add(Ruling::Ask, Condition::Request(pushes), "pushes commits");
            let others = Condition::OtherRequests(vec![looks(), fetches()]);
            add(Ruling::Ask, others, "is neither a download nor a fetch");
        }
        for text in immutable {
            let read = Immutable::read(text.get_ref()).map_err(|message| self.bad(&text.span(), message))?;
            sheet.settings.immutable.push(read);
        }
        if let Some(text) = cache {
            let read = |text: &str| if text == "none" { Ok(0) } else { model::units::bytes(text) };
            let bad = |error| self.bad(&text.span(), format!("network.cache: {error}; or write `none`"));
            sheet.settings.cache = Some(read(text.get_ref()).map_err(bad)?);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn conditional(
        &self,
        sheet: &mut Sheet,
        id: &'static str,
        text: &Text,
        then: Ruling,
        hosts: &Condition,
        when: Condition,
        why: String,
    ) {
        sheet.rules.push(Rule {
            id: id.into(),
            place: self.place(&text.span()).into(),
            actions: CONNECT.into(),
            conditions: Conditions::Known(vec![hosts.clone(), when]),
            then,
            why: why.into(),
            own: false,
        });
    }

    pub(super) fn host(&self, text: &Text) -> Result<HostPattern, BadPolicy> {
        HostPattern::read(text.get_ref()).map_err(|message| self.bad(&text.span(), message))
    }

    pub(super) fn request(&self, methods: &[Text], urls: &[Text]) -> Result<RequestPattern, BadPolicy> {
        let bad = |text: &Text, message: String| self.bad(&text.span(), message);
        let methods = methods.iter().map(|text| Method::read(text.get_ref()).map_err(|message| bad(text, message)));
        let urls = urls.iter().map(|text| UrlPattern::read(text.get_ref()).map_err(|message| bad(text, message)));
        Ok(RequestPattern { methods: methods.collect::<Result<_, _>>()?, urls: urls.collect::<Result<_, _>>()? })
    }

    pub(super) fn secret(
        &self,
        key: &Spanned<String>,
        secret: &file::Secret,
        sheet: &mut Sheet,
    ) -> Result<(), BadPolicy> {
        let name = key.get_ref();
        if !is_secret(name) {
            let message =
                format!("`{}` is no name for a secret; use letters, digits, `_`, `-` and `.`", name.escape_debug());
            return Err(self.bad(&key.span(), message));
        }
        let file::Secret { hosts, source, ttl, variable, prefix } = secret;
        if self.owner == Owner::Project
            && let Some(text) = source.iter().chain(ttl).chain(variable).chain(prefix).next()
        {
            let message = format!(
                "where the secret `{name}` comes from is not for a project's file; put `[secrets.{name}]` in your own policy"
            );
            return Err(self.bad(&text.span(), message));
        }
        let mut terms = SecretTerms::default();
        for text in hosts {
            let pattern = self.host(text)?;
            terms.hosts.push((pattern.clone(), self.place(&text.span())));
            let id = format!("secrets.{name}");
            self.section(sheet, &id, text, &[Action::SecretUse], Condition::Host(vec![pattern]), Ruling::Allow);
            if let Some(rule) = sheet.rules.last_mut() {
                rule.conditions.add(Condition::Name(vec![Glob::new(name)]));
            }
        }
        if let Some(text) = source {
            let known = match text.get_ref().split_once(':') {
                None => matches!(text.get_ref().as_str(), "store" | "keyring"),
                Some((kind, rest)) => matches!(kind, "env" | "cmd") && !rest.trim().is_empty(),
            };
            if !known || text.get_ref().contains('\0') {
                let shown = text.get_ref().escape_debug();
                let message = format!("`{shown}` is no source; write `store`, `env:NAME`, `cmd:COMMAND` or `keyring`");
                return Err(self.bad(&text.span(), message));
            }
            terms.source = Some(text.get_ref().clone());
        }
        if let Some(text) = ttl {
            if !terms.source.as_ref().is_some_and(|source| source.starts_with("cmd:")) {
                let message =
                    format!("only what a command says has a time to live; write `source = \"cmd:…\"` for `{name}`");
                return Err(self.bad(&text.span(), message));
            }
            let bad = |message: String| self.bad(&text.span(), message);
            let time = model::units::duration(text.get_ref()).map_err(|error| bad(error.to_string()))?;
            if time.is_zero() {
                return Err(bad("it would be too old at once; write `5m`".to_owned()));
            }
            terms.ttl = Some(time);
        }
        if let Some(text) = variable {
            if !is_variable(text.get_ref()) {
                let message = format!("`{}` is no name for a variable", text.get_ref().escape_debug());
                return Err(self.bad(&text.span(), message));
            }
            terms.variable = Some(text.get_ref().clone());
        }
        if let Some(text) = prefix {
            let known = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
            if text.get_ref().len() > 40 || !text.get_ref().chars().all(known) {
                let shown = text.get_ref().escape_debug();
                let message = format!("`{shown}` is no prefix; use up to 40 letters, digits, `_`, `-` and `.`");
                return Err(self.bad(&text.span(), message));
            }
            terms.prefix = Some(text.get_ref().clone());
        }
        sheet.settings.secrets.insert(name.clone(), terms);
        Ok(())
    }
}

pub fn is_secret(name: &str) -> bool {
    let known = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    (1..=100).contains(&name.len()) && name.chars().all(known)
}

fn is_variable(name: &str) -> bool {
    let known = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty() && name.chars().all(known) && !name.starts_with(|letter: char| letter.is_ascii_digit())
}

/// From texts that are sound, as a test sees.
fn requests(methods: &[&str], urls: &[&str]) -> RequestPattern {
    RequestPattern {
        methods: methods.iter().filter_map(|text| Method::read(text).ok()).collect(),
        urls: urls.iter().filter_map(|text| UrlPattern::read(text).ok()).collect(),
    }
}
