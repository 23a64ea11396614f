//! `artifacts!`: several aliases that are artifacts.

/// Registers several types as artifacts: each line is an alias, with the attributes of its roles in parentheses.
///
/// ```
/// use batch_runtime::prelude::*;
/// # mod generic {
/// #     use batch_runtime::prelude::*;
/// #     #[derive(BatchArtifact)]
/// #     pub struct Reader<T> { next: Option<T> }
/// #     #[item_reader]
/// #     impl<T: Send + 'static> Reader<T> {
/// #         #[read_item]
/// #         fn read(&mut self) -> Option<T> { self.next.take() }
/// #     }
/// #     #[derive(BatchArtifact)]
/// #     pub struct Skips;
/// #     #[skip_listener]
/// #     impl Skips {}
/// #     #[checkpoint_listener]
/// #     impl Skips {}
/// # }
/// # use generic::*;
/// # struct Flight;
///
/// batch_runtime::artifacts! {
///     FlightReader(item_reader) = Reader<Flight>;
///     Rejects(skip_listener, checkpoint_listener) = Skips;
/// }
/// ```
///
/// That is the same as:
///
/// ```ignore
/// #[item_reader("FlightReader")]
/// type FlightReader = Reader<Flight>;
/// #[skip_listener("Rejects")]
/// #[checkpoint_listener("Rejects")]
/// type Rejects = Skips;
/// ```
// Spec: ART-16
#[macro_export]
macro_rules! artifacts {
    ($($(#[$about:meta])* $visibility:vis $name:ident($($role:ident),+) = $artifact:ty;)+) => {$(
        $(#[$about])*
        $(#[$crate::prelude::$role])+
        $visibility type $name = $artifact;
    )+};
}
