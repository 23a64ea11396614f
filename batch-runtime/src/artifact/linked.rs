//! What the annotations of all linked crates submit: artifacts, loaders and exceptions. The only file that names inventory.
// Spec: LOADER-16, LOADER-19

use super::loader::LoaderRegistration;
use super::registry::{ArtifactRegistration, ExceptionRegistration};

inventory::collect!(ArtifactRegistration);
inventory::collect!(LoaderRegistration);
inventory::collect!(ExceptionRegistration);

/// Returns every `#[derive(BatchException)]` of every crate linked into the program.
pub(super) fn exceptions() -> impl Iterator<Item = &'static ExceptionRegistration> {
    inventory::iter::<ExceptionRegistration>()
}

/// Returns every artifact of every crate linked into the program.
pub(crate) fn artifacts() -> impl Iterator<Item = &'static ArtifactRegistration> {
    inventory::iter::<ArtifactRegistration>()
}

/// Returns every `#[artifact_loader]` of every crate linked into the program.
pub(crate) fn loaders() -> impl Iterator<Item = &'static LoaderRegistration> {
    inventory::iter::<LoaderRegistration>()
}
