//! The artifacts of all linked crates, found by name and role.

use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, Spanned};

use crate::artifact::{ArtifactRegistration, Role, registry};

/// `ref` names no artifact.
const UNKNOWN: &str = "ART0001";
/// `ref` names an artifact of another role.
const WRONG_ROLE: &str = "ART0002";
/// `ref` names several artifacts.
const AMBIGUOUS: &str = "ART0003";

/// The artifacts of all linked crates.
pub(crate) struct Artifacts {
    all: Vec<&'static ArtifactRegistration>,
}

impl Artifacts {
    /// Drains the registry.
    pub(crate) fn linked() -> Self {
        Self {
            all: registry::linked().collect(),
        }
    }

    /// The types that have the role and are known by the name: by the annotation's name first, else by their own.
    ///
    /// Spec: D-64, D-65
    fn lookup(&self, role: Role, name: &str) -> Vec<&'static ArtifactRegistration> {
        let of_role = || {
            self.all
                .iter()
                .copied()
                .filter(move |registration| registration.role() == role)
        };
        let by_name: Vec<_> = of_role()
            .filter(|registration| registration.name == name)
            .collect();
        if !by_name.is_empty() {
            return by_name;
        }
        let is_class = |registration: &&'static ArtifactRegistration| {
            registration.class == name || registration.declared_class == Some(name)
        };
        of_role().filter(is_class).collect()
    }

    pub(super) fn find(
        &self,
        role: Role,
        name: &Spanned<String>,
    ) -> Result<&'static ArtifactRegistration, Box<Diagnostic>> {
        match self.lookup(role, &name.value).as_slice() {
            [one] => Ok(one),
            [] => Err(Box::new(self.not_found(role, name))),
            several => Err(Box::new(ambiguous(&role.to_string(), name, several))),
        }
    }

    /// Every role of `roles` that the listener called `name` has. Spec: JSL-STEPLIS-07, JSL-JOBLIS-05, JSL-STEPLIS-03
    pub(super) fn find_listener(
        &self,
        roles: &[Role],
        name: &Spanned<String>,
    ) -> Result<Vec<&'static ArtifactRegistration>, Box<Diagnostic>> {
        let found: Vec<_> = roles
            .iter()
            .flat_map(|role| self.lookup(*role, &name.value))
            .collect();
        match found.first() {
            None => Err(Box::new(self.not_found(roles[0], name))),
            Some(first) if found.iter().any(|other| other.class != first.class) => {
                Err(Box::new(ambiguous("listener", name, &found)))
            }
            Some(_) => Ok(found),
        }
    }

    /// Whom a name means where an artifact of `role` is expected; a listener may have several roles, of which `role` is
    /// the place's own.
    ///
    /// # Errors
    /// What binding would say of the name.
    #[cfg(feature = "cli")]
    pub(crate) fn named(
        &self,
        role: Role,
        name: &Spanned<String>,
    ) -> Result<Vec<&'static ArtifactRegistration>, Box<Diagnostic>> {
        if !role.is_listener() {
            return Ok(vec![self.find(role, name)?]);
        }
        let mut roles: Vec<Role> = self.all.iter().map(|one| one.role()).collect();
        roles.retain(|other| other.is_listener() && *other != role);
        roles.sort_unstable();
        roles.dedup();
        roles.insert(0, role);
        self.find_listener(&roles, name)
    }

    fn not_found(&self, role: Role, name: &Spanned<String>) -> Diagnostic {
        let named = |registration: &&&ArtifactRegistration| {
            registration.name == name.value || registration.class == name.value
        };
        if let Some(other) = self.all.iter().find(named) {
            return Diagnostic::error(
                WRONG_ROLE,
                format!(
                    "`{}` is no {role}, it is {}",
                    name.value,
                    other.role().with_article()
                ),
                name.span.clone(),
            )
            .label(format!("{} is needed here", role.with_article()))
            .help(format!("`{}` is registered at {}", name.value, place(other)));
        }
        let names: Vec<&str> = self
            .all
            .iter()
            .filter(|registration| registration.role() == role)
            .map(|registration| registration.name)
            .collect();
        let diagnostic = Diagnostic::error(
            UNKNOWN,
            format!("no {role} is called `{}`", name.value),
            name.span.clone(),
        );
        let linked = "an artifact crate is linked only if the program names it: `use my_artifacts as _;`";
        match nearest(&name.value, names.iter().copied()) {
            Some(near) => diagnostic
                .label("unknown artifact")
                .help(format!("did you mean `{near}`? If not: {linked}")),
            None if names.is_empty() => diagnostic
                .label("unknown artifact")
                .help(format!("the program has no {role} at all; {linked}")),
            None => {
                let known = names.join("`, `");
                diagnostic
                    .label("unknown artifact")
                    .help(format!("known: `{known}`. If yours is missing: {linked}"))
            }
        }
    }
}

fn ambiguous(what: &str, name: &Spanned<String>, found: &[&ArtifactRegistration]) -> Diagnostic {
    let places: Vec<String> = found.iter().map(|one| place(one)).collect();
    let message = format!("several artifacts are {what} `{}`", name.value);
    Diagnostic::error(AMBIGUOUS, message, name.span.clone())
        .label("which one?")
        .help(format!("give one of them another name: {}", places.join(", ")))
}

/// Where the attribute stands.
pub(super) fn place(registration: &ArtifactRegistration) -> String {
    format!("{}:{}", registration.file, registration.line)
}
