//! Fields that nothing is injected into.

/// The type of a field that is neither a property nor a context.
// Spec: ART-10
#[diagnostic::on_unimplemented(
    message = "field of type `{Self}` has no default value",
    label = "`{Self}` does not implement `Default`",
    note = "add `#[default(expression)]` to the field, make it an `Option`, or mark it as `#[batch_property]` or `#[batch_context]`"
)]
pub trait DefaultField: Sized {
    /// Returns the value before the first method of the artifact is called.
    fn default_value() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> DefaultField for T {
    fn default_value() -> Self {
        Self::default()
    }
}
