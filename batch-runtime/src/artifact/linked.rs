//! What all linked crates submit: artifacts, loaders and exceptions, by their annotations, and clients of destinations. The only file that names inventory.
// Spec: LOADER-16, LOADER-19

use super::loader::LoaderRegistration;
use super::registry::{ArtifactRegistration, ExceptionRegistration};
use crate::marker::DestinationClient;

inventory::collect!(ArtifactRegistration);
inventory::collect!(LoaderRegistration);
inventory::collect!(ExceptionRegistration);
inventory::collect!(DestinationClient);

/// Returns the clients of destinations of every crate linked into the program.
pub(crate) fn destination_clients() -> impl Iterator<Item = &'static DestinationClient> {
    inventory::iter::<DestinationClient>()
}

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
