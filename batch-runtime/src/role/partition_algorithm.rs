//! A partition algorithm: its attribute, and the erased trait that the attribute implements.

use crate::error::BatchError;
use crate::plan::PartitionPlan;

/// Makes a type a partition algorithm, which decides into how many partitions a step or flow is divided, and sets
/// the properties of each.
///
/// Takes the arguments of [every artifact attribute](crate#artifact-attributes).
///
#[doc = batch_macros::__role_methods!(partition_algorithm)]
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Months;
///
/// #[partition_algorithm]
/// impl Months {
///     #[calculate_partitions]
///     fn months(&mut self) -> PartitionPlan {
///         PartitionPlan::with_properties((1..=12).map(|month| [("month", month.to_string())]))
///     }
/// }
/// ```
///
/// It can also be on a [function](crate#artifact-attributes).
// Spec: ART-15, PALG-01 to PALG-04
#[doc(inline)]
pub use batch_macros::partition_algorithm;

/// A partition algorithm.
// Spec: PALG-02
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a partition algorithm",
    label = "this type has no `#[partition_algorithm]` impl block"
)]
pub trait PartitionAlgorithm: Send {
    /// `#[calculate_partitions]`. An error fails the step or flow.
    // Spec: PALG-04
    fn calculate_partitions(&mut self) -> Result<PartitionPlan, BatchError>;
}
