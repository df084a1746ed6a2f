//! The names of the schema, looked up once: to make one from text takes longer than a judgement.

use cedar_policy::{EntityId, EntityTypeName, EntityUid, PolicySet};
use model::Action;

/// For people.
pub(crate) const SCHEMA: &str = include_str!("schema.cedarschema");
/// The same for us, since Cedar takes six times as long to read the other:
/// `cargo run -p belljar-cedar --example schema > crates/rules/cedar/src/schema.json`.
pub(crate) const SCHEMA_JSON: &str = include_str!("schema.json");

/// What principals and resources are.
const KINDS: &[&str] =
    &["User", "Agent", "Command", "Code", "Path", "Variable", "Wall", "Domain", "Host", "Secret", "Artifact"];

pub(crate) struct Vocabulary {
    pub user: EntityTypeName,
    pub agent: EntityTypeName,
    pub command: EntityTypeName,
    pub code: EntityTypeName,
    pub path: EntityTypeName,
    pub variable: EntityTypeName,
    pub wall: EntityTypeName,
    pub domain: EntityTypeName,
    pub host: EntityTypeName,
    pub secret: EntityTypeName,
    pub artifact: EntityTypeName,
    /// In the order of `Action::ALL`.
    actions: Vec<EntityUid>,
}

impl Vocabulary {
    /// All at once, as a policy that names them: the parser for policies is needed anyway, and those for single names are not
    /// made then. The schema has the same, and takes far longer to be read.
    pub fn read() -> Result<Vocabulary, String> {
        let actions: Vec<String> = Action::ALL.iter().map(|action| format!("Action::\"{action}\"")).collect();
        let kinds: Vec<String> = KINDS.iter().map(|kind| format!("{kind}::\"\"")).collect();
        let listed = [actions, kinds].concat().join(", ");
        let text = format!("permit(principal, action, resource) when {{ [{listed}].contains(resource) }};");
        let set: PolicySet = text.parse().map_err(|error: cedar_policy::ParseErrors| error.to_string())?;
        let named: Vec<EntityUid> = set.policies().flat_map(|policy| policy.entity_literals()).collect();
        Vocabulary::of(&named).ok_or_else(|| "a name is missing".to_owned())
    }

    fn of(named: &[EntityUid]) -> Option<Vocabulary> {
        let entity = |name: &str| {
            named
                .iter()
                .map(EntityUid::type_name)
                .find(|known| known.basename() == name && KINDS.contains(&name))
                .cloned()
        };
        let action = |one: &Action| {
            let is_it =
                |known: &&EntityUid| known.type_name().basename() == "Action" && known.id().unescaped() == one.name();
            named.iter().find(is_it).cloned()
        };
        Some(Vocabulary {
            user: entity("User")?,
            agent: entity("Agent")?,
            command: entity("Command")?,
            code: entity("Code")?,
            path: entity("Path")?,
            variable: entity("Variable")?,
            wall: entity("Wall")?,
            domain: entity("Domain")?,
            host: entity("Host")?,
            secret: entity("Secret")?,
            artifact: entity("Artifact")?,
            actions: Action::ALL.iter().map(action).collect::<Option<_>>()?,
        })
    }

    pub fn action(&self, action: Action) -> Option<&EntityUid> {
        let at = Action::ALL.iter().position(|known| *known == action)?;
        self.actions.get(at)
    }

    /// What an action is done to. There is one kind for each.
    pub fn resource_of(&self, action: Action) -> &EntityTypeName {
        match action {
            Action::Exec => &self.command,
            Action::Code => &self.code,
            Action::Read | Action::Write | Action::Commit => &self.path,
            Action::Environment => &self.variable,
            Action::Gap => &self.wall,
            Action::Connect => &self.host,
            Action::SecretUse => &self.secret,
            Action::Release => &self.artifact,
        }
    }
}

pub(crate) fn named(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

/// Names of hosts are compared in this form: lower case, without the dot at the end. None for what is no such name.
pub(crate) fn host_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    // In letters beyond ASCII one name can be written in many ways; on the wire it never is.
    let plain = name.len() <= 255 && name.bytes().all(|byte| byte.is_ascii_graphic());
    (plain && name.split('.').all(|label| !label.is_empty())).then_some(name)
}

/// Absolute, with nothing in it that leads elsewhere, so that what it begins with is what it is below of.
pub(crate) fn is_plain_path(path: &str) -> bool {
    let parts = |path: &str| path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    path == "/" || path.len() <= 4096 && path.strip_prefix('/').is_some_and(parts)
}

#[cfg(test)]
mod tests {
    use cedar_policy::Schema;

    use super::*;

    #[test]
    fn the_schema_has_every_name() {
        let schema = Schema::from_json_str(SCHEMA_JSON).expect("a schema");
        let words = Vocabulary::read().expect("every name");
        let mut kinds: Vec<&str> = schema.entity_types().map(|kind| kind.basename()).collect();
        let mut known = KINDS.to_vec();
        kinds.sort_unstable();
        known.sort_unstable();
        assert_eq!(kinds, known);
        for action in Action::ALL {
            let known = words.action(action).expect("every action");
            let resources: Vec<_> = schema.resources_for_action(known).expect("an action").collect();
            assert_eq!(resources, [words.resource_of(action)], "{action}");
        }
        assert_eq!(schema.actions().count(), Action::ALL.len());
    }

    #[test]
    fn both_schemas_are_the_same() {
        let (schema, warnings) = cedar_policy::SchemaFragment::from_cedarschema_str(SCHEMA).expect("a schema");
        assert_eq!(warnings.count(), 0);
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(json(SCHEMA_JSON), json(&schema.to_json_string().expect("JSON")), "see `SCHEMA_JSON`");
    }

    #[test]
    fn a_host_has_one_name() {
        assert_eq!(host_name("Example.ORG."), Some("example.org".to_owned()));
        assert_eq!(host_name("::1"), Some("::1".to_owned()));
        for odd in ["", ".", "a..b", ".a", "a b", "ex\u{e4}mple.org", &"a".repeat(256)] {
            assert_eq!(host_name(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_not_plain() {
        assert!(["/", "/a", "/a/b.c", "/a/...", "/a b"].into_iter().all(is_plain_path));
        let long = format!("/{}", "a".repeat(4096));
        assert!(!["", "a", "/a/", "//", "/a//b", "/a/../b", "/./a", "./a", &long].into_iter().any(is_plain_path));
    }
}
