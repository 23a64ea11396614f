// Spec: ART-01
use batch_runtime::prelude::*;

trait Listen {
    fn before(&mut self);
}

#[step_listener]
impl dyn Listen {
    #[before_step]
    fn begin(&mut self) {}
}

fn main() {}
