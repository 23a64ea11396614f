//! Resolves a `ref` to its artifact: by the preferred loader, then batch.xml, then the name or class of the artifacts
//! of all linked crates, the built-in ones last.
// Spec: LOADER-02 to LOADER-08, LOADER-16, LOADER-17, LOADER-20, D-64, D-65

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use batch_xml::suggest::nearest;
use batch_xml::{ArtifactEntry, Diagnostic, Spanned};

use crate::artifact::{ArtifactRegistration, BatchArtifactLoader, ITEM_TIME};
use crate::engine::{call, discard};
use crate::error::BatchError;
use crate::role::Role;

/// `ref` names no artifact.
const UNKNOWN: &str = "ART0001";
/// `ref` names an artifact of another role.
const WRONG_ROLE: &str = "ART0002";
/// `ref` names several artifacts.
pub(super) const AMBIGUOUS: &str = "ART0003";
/// The preferred loader failed.
pub(super) const LOADER_FAILED: &str = "ART0020";
/// batch.xml names a class that the program does not have.
pub(super) const UNKNOWN_CLASS: &str = "ART0021";

/// The artifacts that the jobs of a runtime can use.
pub(crate) struct Artifacts {
    /// The artifacts of all linked crates.
    pub(super) all: Vec<&'static ArtifactRegistration>,
    pub(super) preferred: Option<Arc<dyn BatchArtifactLoader>>,
    /// The entries of batch.xml by id.
    pub(super) mapped: BTreeMap<String, ArtifactEntry>,
    /// The warnings about batch.xml.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// An artifact that a `ref` resolves to, in one of its roles.
pub(super) struct Found {
    pub(super) registration: &'static ArtifactRegistration,
    /// The preferred loader, if the artifact comes from it.
    pub(super) loader: Option<Arc<dyn BatchArtifactLoader>>,
}

/// The resolution of a `ref`, regardless of the role.
enum Resolution<'a> {
    /// A type that the preferred loader creates, with its role if it is not registered.
    Loaded(TypeId, &'static str, Option<&'static ArtifactRegistration>),
    /// A class that batch.xml names.
    Mapped(&'a ArtifactEntry),
    /// An artifact registered under the name.
    Registered,
}

impl Artifacts {
    /// Returns the artifacts of all linked crates.
    pub(crate) fn registered(&self) -> impl Iterator<Item = &'static ArtifactRegistration> {
        self.all.iter().copied()
    }

    pub(super) fn find(&self, role: Role, name: &Spanned<String>) -> Result<Found, Box<Diagnostic>> {
        let resolution = self.resolve(name)?;
        match self.in_role(&resolution, role, name).as_slice() {
            [one] => Ok(self.found(&resolution, one)),
            [] => Err(Box::new(self.not_found(&resolution, &[role], name))),
            several => Err(Box::new(ambiguous(&resolution, &role.to_string(), name, several))),
        }
    }

    /// Returns every role of `roles` that the listener `name` has.
    // Spec: JSL-STEPLIS-07, JSL-JOBLIS-05, JSL-STEPLIS-03
    pub(super) fn find_listener(
        &self,
        roles: &[Role],
        name: &Spanned<String>,
    ) -> Result<Vec<Found>, Box<Diagnostic>> {
        let resolution = self.resolve(name)?;
        let found: Vec<_> = roles
            .iter()
            .flat_map(|role| self.in_role(&resolution, *role, name))
            .collect();
        match found.first() {
            None => Err(Box::new(self.not_found(&resolution, roles, name))),
            Some(first) if found.iter().any(|other| other.type_id != first.type_id) => {
                Err(Box::new(ambiguous(&resolution, "listener", name, &found)))
            }
            Some(_) => Ok(found
                .into_iter()
                .map(|one| self.found(&resolution, one))
                .collect()),
        }
    }

    /// Returns the registrations that a name resolves to where an artifact of `role` is expected: one, or for a
    /// listener one for each of its listener roles, `role` first.
    ///
    /// # Errors
    /// The diagnostic that binding reports.
    pub(crate) fn named(
        &self,
        role: Role,
        name: &Spanned<String>,
    ) -> Result<Vec<&'static ArtifactRegistration>, Box<Diagnostic>> {
        if !role.is_listener() {
            return Ok(vec![self.find(role, name)?.registration]);
        }
        let mut roles = Role::ALL.to_vec();
        roles.retain(|other| other.is_listener() && *other != role);
        roles.insert(0, role);
        let found = self.find_listener(&roles, name)?;
        Ok(found.into_iter().map(|found| found.registration).collect())
    }

    fn found(&self, resolution: &Resolution<'_>, registration: &'static ArtifactRegistration) -> Found {
        let loader = self
            .preferred
            .clone()
            .filter(|_| matches!(resolution, Resolution::Loaded(..)));
        Found { registration, loader }
    }

    /// Resolves a name by the loaders in their order.
    // Spec: LOADER-03, LOADER-04, LOADER-07, D-64
    fn resolve(&self, name: &Spanned<String>) -> Result<Resolution<'_>, Box<Diagnostic>> {
        if let Some(loader) = &self.preferred {
            match call(|| loader.load(&name.value)) {
                Ok(None) => {}
                Ok(Some(loaded)) => {
                    let resolution = Resolution::Loaded(loaded.type_id(), loaded.type_name(), loaded.role());
                    // The instance only shows its type: each place gets another instance. Spec: LOADER-18
                    discard(loaded);
                    return Ok(resolution);
                }
                Err(error) => {
                    let message = format!("the artifact loader cannot load `{}`", name.value);
                    return Err(Box::new(
                        Diagnostic::error(LOADER_FAILED, message, name.span.clone())
                            .label(loader_error(&error))
                            .help("a loader returns `None` for a name that it does not know, so that the built-in loader resolves it"),
                    ));
                }
            }
        }
        match self.mapped.get(&name.value) {
            None => Ok(Resolution::Registered),
            Some(entry) if self.of_class(&entry.class.value).next().is_some() => {
                Ok(Resolution::Mapped(entry))
            }
            Some(entry) => Err(Box::new(self.unknown_class(entry, name))),
        }
    }

    /// Returns the types that match and have the role. A type that several aliases register counts once.
    fn in_role(
        &self,
        resolution: &Resolution<'_>,
        role: Role,
        name: &Spanned<String>,
    ) -> Vec<&'static ArtifactRegistration> {
        let built_in = match resolution {
            Resolution::Registered if ITEM_TIME.name == name.value => vec![&ITEM_TIME],
            _ => Vec::new(),
        };
        let groups = self.matching(resolution, name).into_iter().chain([built_in]);
        let mut in_role = groups.map(|mut group| {
            let mut seen = BTreeSet::new();
            group.retain(|one| one.role() == role && seen.insert(one.type_id));
            group
        });
        in_role.find(|group| !group.is_empty()).unwrap_or_default()
    }

    /// Returns the artifacts that match, in any role: by name, then by class.
    fn matching(
        &self,
        resolution: &Resolution<'_>,
        name: &Spanned<String>,
    ) -> [Vec<&'static ArtifactRegistration>; 2] {
        let all = || self.all.iter().copied();
        match resolution {
            Resolution::Loaded(type_id, _, Some(role)) => {
                // A registered type has the arguments of its attribute, such as `pipelined`.
                let is_same =
                    |one: &&ArtifactRegistration| one.type_id == *type_id && one.role() == role.role();
                [vec![all().find(is_same).unwrap_or(role)], Vec::new()]
            }
            Resolution::Loaded(type_id, _, None) => {
                [all().filter(|one| one.type_id == *type_id).collect(), Vec::new()]
            }
            Resolution::Mapped(entry) => [self.of_class(&entry.class.value).collect(), Vec::new()],
            Resolution::Registered => [
                all().filter(|one| one.name == name.value).collect(),
                self.of_class(&name.value).collect(),
            ],
        }
    }

    // Spec: LOADER-13
    fn of_class(&self, class: &str) -> impl Iterator<Item = &'static ArtifactRegistration> {
        self.all
            .iter()
            .copied()
            .filter(move |one| one.class == class || one.declared_class == Some(class))
    }

    fn unknown_class(&self, entry: &ArtifactEntry, name: &Spanned<String>) -> Diagnostic {
        let classes = self.all.iter().map(|one| (one.class, one.declared_class));
        let class = &entry.class.value;
        Diagnostic::error(
            UNKNOWN_CLASS,
            format!(
                "no artifact has the class `{class}`, to which batch.xml maps `{}`",
                name.value
            ),
            name.span.clone(),
        )
        .label("cannot be loaded")
        .related(entry.class.span.clone(), "the class is named here")
        .help(class_help(class, classes))
    }

    /// Reports a name that has no artifact in any of the roles. The message shows the first role.
    fn not_found(&self, resolution: &Resolution<'_>, roles: &[Role], name: &Spanned<String>) -> Diagnostic {
        let role = roles[0];
        let other = self.matching(resolution, name).into_iter().flatten().next();
        let (wanted, name_text) = (role.with_article(), &name.value);
        let but = |other: &ArtifactRegistration| {
            format!(
                "`{name_text}` is not {wanted} but {}",
                other.role().with_article()
            )
        };
        let (message, help) = match (resolution, other) {
            (Resolution::Loaded(_, _, Some(given)), Some(other)) => (
                but(other),
                format!(
                    "the artifact loader returns it by `LoadedArtifact::{}`; use `LoadedArtifact::{}`",
                    given.role().attribute(),
                    role.attribute()
                ),
            ),
            (Resolution::Loaded(_, type_name, _), Some(other)) => (
                but(other),
                format!(
                    "the artifact loader returns a `{type_name}`, which is registered at {}",
                    other.place()
                ),
            ),
            (_, Some(other)) => (
                but(other),
                format!("`{name_text}` is registered at {}", other.place()),
            ),
            (Resolution::Loaded(_, type_name, _), None) => (
                format!("`{name_text}` is not {wanted}: the artifact loader returns a `{type_name}`"),
                format!(
                    "write `#[{}]` on an impl block of that type; if it is generic, also on a type alias of it",
                    role.attribute()
                ),
            ),
            (_, None) => return self.unknown(roles, name),
        };
        let diagnostic = Diagnostic::error(WRONG_ROLE, message, name.span.clone());
        with_entry(resolution, diagnostic.label(format!("{wanted} is required here"))).help(help)
    }

    fn unknown(&self, roles: &[Role], name: &Spanned<String>) -> Diagnostic {
        let known = self.all.iter().copied().chain([&ITEM_TIME]);
        let fitting = known.filter(|one| roles.contains(&one.role()));
        let mut names: Vec<&str> = fitting.map(|one| one.name).collect();
        names.sort_unstable();
        names.dedup();
        let (name, span) = (name.value.as_str(), &name.span);
        // `com.example.SendMail`, as Java may name `sendMail`.
        let last = name.rsplit('.').next().unwrap_or(name);
        let is_same = |other: &&&str| other.eq_ignore_ascii_case(last);
        let near = nearest(name, names.iter().copied()).or_else(|| names.iter().find(is_same).copied());
        let linked = "an artifact crate is linked only if the program names it: `use my_artifacts as _;`";
        let attribute = roles[0].attribute();
        let declared = format!("declare it with `#[{attribute}({name:?})]`");
        let help = match near {
            Some(near) => format!("did you mean `{near}`? If not: {linked}"),
            None if names.is_empty() => format!("{declared}; {linked}"),
            None => format!(
                "known: `{}`. If yours is missing: {declared}; {linked}",
                names.join("`, `")
            ),
        };
        let role = match roles {
            [role] => role.to_string(),
            _ => "listener".to_owned(),
        };
        Diagnostic::error(UNKNOWN, format!("unknown {role} `{name}`"), span.clone())
            .label("unknown artifact")
            .help(help)
    }
}

fn ambiguous(
    resolution: &Resolution<'_>,
    what: &str,
    name: &Spanned<String>,
    found: &[&ArtifactRegistration],
) -> Diagnostic {
    // One type may have several roles.
    let mut types: Vec<&ArtifactRegistration> = Vec::new();
    for one in found {
        if types.iter().all(|other| other.type_id != one.type_id) {
            types.push(one);
        }
    }
    let places: Vec<String> = types
        .iter()
        .map(|one| format!("`{}` ({})", one.class, one.place()))
        .collect();
    let message = format!("{what} `{}` is ambiguous", name.value);
    let remedy = match resolution {
        Resolution::Registered => format!(
            "give one of them another name, or map this one in batch.xml: `<artifact id=\"{}\" classname=\"{}\"/>`",
            name.value,
            found.first().map_or("..", |one| one.class)
        ),
        _ => "give one of them another class, or use the path of its type as the class".to_owned(),
    };
    with_entry(
        resolution,
        Diagnostic::error(AMBIGUOUS, message, name.span.clone()),
    )
    .label("several artifacts match")
    .help(format!("they are {}; {remedy}", places.join(" and ")))
}

/// Adds the entry of batch.xml, if the resolution used one.
// Spec: LOADER-15
fn with_entry(resolution: &Resolution<'_>, diagnostic: Diagnostic) -> Diagnostic {
    match resolution {
        Resolution::Mapped(entry) => diagnostic.related(entry.class.span.clone(), "its class is set here"),
        _ => diagnostic,
    }
}

/// Suggests a class for an unknown one: the same type at another path, a similar name, or all classes.
pub(super) fn class_help(
    wanted: &str,
    known: impl Iterator<Item = (&'static str, Option<&'static str>)>,
) -> String {
    let mut known: Vec<&str> = known
        .flat_map(|(class, declared)| [Some(class), declared])
        .flatten()
        .collect();
    known.sort_unstable();
    known.dedup();
    let last = |class: &str| class.rsplit([':', '.']).next().unwrap_or_default().to_owned();
    let type_name = last(wanted);
    let near = nearest(wanted, known.iter().copied())
        .or_else(|| known.iter().copied().find(|class| last(class) == type_name))
        .or_else(|| {
            let names: Vec<String> = known.iter().map(|class| last(class)).collect();
            let near = nearest(&type_name, names.iter().map(String::as_str))?;
            let position = names.iter().position(|name| name == near)?;
            Some(known[position])
        });
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "a class is the full path of a registered Rust type (`my_crate::io::MyReader`), or what its annotation \
                 gives as `class`"
            .to_owned(),
    }
}

/// Returns the message of an error of the preferred loader.
pub(super) fn loader_error(error: &BatchError) -> String {
    let text = error.chain();
    match text.strip_prefix("the artifact panicked") {
        Some(rest) if error.is_panic() => format!("the artifact loader panicked{rest}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use batch_xml::{Source, Span};

    use super::*;
    use crate::role::CheckpointAlgorithm;

    #[derive(batch_macros::BatchArtifact)]
    struct RuntimeProperties {}

    impl CheckpointAlgorithm for RuntimeProperties {
        fn get_checkpoint_timeout(&mut self, timeout: i32) -> Result<i32, BatchError> {
            Ok(timeout)
        }
        fn begin_checkpoint(&mut self) -> Result<(), BatchError> {
            Ok(())
        }
        fn is_ready_to_checkpoint(&mut self) -> Result<bool, BatchError> {
            Ok(true)
        }
        fn end_checkpoint(&mut self) -> Result<(), BatchError> {
            Ok(())
        }
    }

    static OWN: ArtifactRegistration = ArtifactRegistration::checkpoint_algorithm::<RuntimeProperties>(
        "item-time",
        "here::RuntimeProperties",
        None,
        file!(),
        line!(),
    );

    /// Returns the class of the checkpoint algorithm of that name, or the error.
    fn found(all: Vec<&'static ArtifactRegistration>, name: &str) -> String {
        let artifacts = Artifacts {
            all,
            preferred: None,
            mapped: BTreeMap::new(),
            warnings: Vec::new(),
        };
        let place = Span::new(&Source::new("job.xml", name), 0..name.len());
        match artifacts.find(Role::CheckpointAlgorithm, &Spanned::new(name.to_owned(), place)) {
            Ok(found) => found.registration.class.to_owned(),
            Err(diagnostic) => diagnostic.to_string(),
        }
    }

    // Spec: LOADER-20, JSL-CHUNK-12, D-02
    #[test]
    fn item_time_is_built_in_and_looked_up_last() {
        assert_eq!(
            found(Vec::new(), "item-time"),
            "batch_runtime::artifact::item_time::ItemTime"
        );
        assert_eq!(found(vec![&OWN], "item-time"), "here::RuntimeProperties");
        let misspelt = found(Vec::new(), "item-tiem");
        assert!(misspelt.contains("did you mean `item-time`?"), "{misspelt}");
    }
}
